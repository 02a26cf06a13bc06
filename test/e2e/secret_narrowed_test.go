package e2e

import (
	"context"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// Whoever narrows a release to one namespace ends what its processes may read in the
// others, whatever they were granted there before: the proxies, and the controller itself.
func TestNarrowingTakesBackWhatWasGranted(t *testing.T) {
	beside(t)
	e := edge{bare(t), t}
	archive, err := chart.Pack(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	release := func(proxy lab.Values) *chart.Release {
		proxy["replicas"], proxy["gracePeriodSeconds"] = 1, 10
		r, err := chart.NewRelease("quayside", lab.SystemNamespace, archive, lab.Values{
			"speaker": lab.Values{"enabled": false}, "proxy": proxy,
			"controller": lab.Values{"extraArgs": []any{"--lease-duration=5s"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	elsewhere := e.Namespace() + "-elsewhere"
	makeNamespace(t, e.Cluster, elsewhere)
	t.Cleanup(func() {
		if err := e.Kube().CoreV1().Namespaces().Delete(context.Background(), elsewhere, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	e.InstallRelease(release(lab.Values{}))
	t.Cleanup(func() {
		if err := e.Uninstall(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, namespace := range []string{e.Namespace(), elsewhere} {
		e.Apply(fmt.Sprintf(`
{apiVersion: v1, kind: Secret, metadata: {name: users, namespace: %[1]s}, stringData: {auth: "me:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: %[1]s, annotations: {nginx.ingress.kubernetes.io/auth-type: basic, nginx.ingress.kubernetes.io/auth-secret: users}}
spec:
  ingressClassName: quayside
  rules: [{host: %[1]s.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 3000}}}}]}}]
`, namespace))
	}
	for _, access := range []string{"Namespaced", "Cluster"} {
		mayRead(t, e.Cluster, "in all namespaces, before "+access, sessionTickets, e.Namespace()+"/users", elsewhere+"/users")
		e.ChangeRelease(release(lab.Values{"watchNamespace": e.Namespace(), "secretAccess": access}))
		mayRead(t, e.Cluster, "narrowed to one, with "+access, sessionTickets, e.Namespace()+"/users")
		e.controllerReadsHereAlone(elsewhere)
		e.ChangeRelease(release(lab.Values{}))
	}
}

// controllerReadsHereAlone asks with the controller's own token for Secrets of the test's
// namespace and of another.
func (e edge) controllerReadsHereAlone(elsewhere string) {
	e.t.Helper()
	controller, err := kubernetes.NewForConfig(accountConfig(e.t, e.Cluster, "quayside-controller", &authenticationv1.TokenRequest{}))
	if err != nil {
		e.t.Fatal(err)
	}
	ask := func(namespace string) error {
		_, get := controller.CoreV1().Secrets(namespace).Get(e.t.Context(), "users", metav1.GetOptions{})
		_, list := controller.CoreV1().Secrets(namespace).List(e.t.Context(), metav1.ListOptions{})
		if apierrors.IsForbidden(get) != apierrors.IsForbidden(list) {
			e.t.Errorf("in %s the controller gets a Secret: %v, and lists them: %v", namespace, get, list)
		}
		return get
	}
	if err := ask(e.Namespace()); err != nil {
		e.t.Errorf("the controller cannot read Secrets of the namespace that is served: %v", err)
	}
	if err := ask(elsewhere); !apierrors.IsForbidden(err) {
		e.t.Errorf("the controller reads Secrets of a namespace that is not served: %v", err)
	}
	if _, err := controller.CoreV1().Secrets("").List(e.t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		e.t.Errorf("the controller lists the Secrets of all namespaces: %v", err)
	}
}
