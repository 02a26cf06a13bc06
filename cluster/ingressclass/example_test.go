package ingressclass_test

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// Who adopts the controller of ingress-nginx serves its classes with their quirks.
func Example() {
	c := snapshot.Of(&networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "public"},
		Spec:       networkingv1.IngressClassSpec{Controller: ingressclass.NginxController},
	})
	for _, rules := range []ingressclass.Rules{{}, {Adopt: []string{ingressclass.NginxController}}} {
		classes := ingressclass.Select(&c.Stores, rules)
		for _, name := range []string{"quayside", "public"} {
			class, ours := classes.Of(&networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: &name}})
			fmt.Println(name, ours, class.Nginx)
		}
	}
	// Output:
	// quayside true false
	// public false false
	// quayside true false
	// public true true
}
