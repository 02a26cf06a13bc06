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
	for _, patch := range []string{
		`{"spec":{"rules":[{"host":"taken.example.com"}]}}`,
		`{"metadata":{"annotations":{"ingress.quayside.io/proxy-body-size":"1g"}}}`,
		`{"metadata":{"labels":{"a":"b"}}}`,
	} {
		_, err := controller.NetworkingV1().Ingresses(e.Namespace()).Patch(t.Context(), "shop", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("the controller's token patches %s: %v", patch, err)
		}
	}

	e.tlsSecret("tls", "shop.example.com")
	stands("with its Secret", func(_ string, there bool) bool { return !there })
}
