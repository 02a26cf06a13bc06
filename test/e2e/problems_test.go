package e2e

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"quayside.io/proxy/route"
)

// What is wrong with an Ingress stands on it for as long as it lasts, beside what its
// owner wrote there, and the controller's token is good for that and nothing else of it.
func TestProblemsStandOnTheIngress(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.serve("shop")
	e.Apply(clusterIPServices("shop") + `
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, annotations: {ingress.quayside.io/proxy-body-size: 1m, team: shop}}
spec:
  tls: [{hosts: [shop.example.com], secretName: tls}]
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 3000}}}}]}}]
`)
	ingresses := e.Kube().NetworkingV1().Ingresses(e.Namespace())
	stands := func(when string, wanted func(problems string, there bool) bool) {
		t.Helper()
		e.Eventually(3*settle, func() error {
			in, err := ingresses.Get(t.Context(), "shop", metav1.GetOptions{})
			if err != nil {
				return err
			}
			text, there := in.Annotations[route.ProblemsAnnotation]
			if !wanted(text, there) {
				return fmt.Errorf("%s: the Ingress has %q", when, in.Annotations)
			}
			if in.Annotations["team"] != "shop" || in.Annotations["ingress.quayside.io/proxy-body-size"] != "1m" {
				return fmt.Errorf("%s: the owner's annotations are %q", when, in.Annotations)
			}
			return nil
		})
	}
	stands("without its Secret", func(text string, _ bool) bool {
		return strings.HasPrefix(text, route.MissingSecret+": ") && !strings.Contains(text, "\n")
	})

	controller, err := kubernetes.NewForConfig(accountConfig(t, e.Cluster, "quayside-controller", &authenticationv1.TokenRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	const option, label = `{"metadata":{"annotations":{"ingress.quayside.io/proxy-body-size":"1g"}}}`, `{"metadata":{"labels":{"a":"b"}}}`
	networking, core := controller.NetworkingV1().RESTClient(), controller.CoreV1().RESTClient()
	for _, try := range []struct {
		through         rest.Interface
		resource, patch string
		parts           []string
	}{
		{networking, "ingresses", `{"spec":{"rules":[{"host":"taken.example.com"}]}}`, nil},
		{networking, "ingresses", option, nil},
		{networking, "ingresses", label, nil},
		// Of a patch of the status, the server takes the spec back and nothing else.
		{networking, "ingresses", option, []string{"status"}},
		{networking, "ingresses", label, []string{"status"}},
		{core, "services", option, []string{"status"}},
		{core, "services", label, []string{"status"}},
	} {
		err := try.through.Patch(types.MergePatchType).Namespace(e.Namespace()).Resource(try.resource).Name("shop").
			SubResource(try.parts...).Body([]byte(try.patch)).Do(t.Context()).Error()
		if !apierrors.IsForbidden(err) {
			t.Errorf("the controller's token patches %s %s with %s: %v", try.resource, try.parts, try.patch, err)
		}
	}

	e.tlsSecret("tls", "shop.example.com")
	stands("with its Secret", func(_ string, there bool) bool { return !there })
}
