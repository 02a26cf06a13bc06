package ingressclass_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// A class that is adopted by its name is served whether or not its IngressClass has gone with
// the chart of ingress-nginx, and not if it is somebody else's by now.
func TestClassesByName(t *testing.T) {
	nginx := []string{ingressclass.NginxController}
	for _, c := range []struct {
		name       string
		rules      ingressclass.Rules
		controller string // of IngressClass public; empty: there is none
		want       ingressclass.Class
		served     bool
	}{
		{"gone", ingressclass.Rules{AdoptNames: []string{"public"}}, "", ingressclass.Class{Nginx: true, Adopted: true}, true},
		{"gone, and not named", ingressclass.Rules{Adopt: nginx, AdoptNames: []string{"other"}}, "", ingressclass.Class{}, false},
		{"there", ingressclass.Rules{Adopt: nginx, AdoptNames: []string{"public"}}, ingressclass.NginxController, ingressclass.Class{Nginx: true, Adopted: true}, true},
		{"there, and its controller is not adopted", ingressclass.Rules{AdoptNames: []string{"public"}}, ingressclass.NginxController, ingressclass.Class{}, false},
		{"another's", ingressclass.Rules{Adopt: nginx, AdoptNames: []string{"public"}}, "example.com/other", ingressclass.Class{}, false},
		{"ours", ingressclass.Rules{Name: "public", AdoptNames: []string{"public"}}, "", ingressclass.Class{}, true},
	} {
		all := snapshot.Of()
		if c.controller != "" {
			all = snapshot.Of(&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "public"}, Spec: networkingv1.IngressClassSpec{Controller: c.controller}})
		}
		classes, public := ingressclass.Select(&all.Stores, c.rules), "public"
		if got, served := classes.Of(&networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: &public}}); served != c.served || got != c.want {
			t.Errorf("%s: served: %v as %+v, want %v as %+v", c.name, served, got, c.served, c.want)
		}
	}
	if a := (ingressclass.Rules{AdoptNames: []string{"a"}}); a.Equal(ingressclass.Rules{}) || !a.Equal(a) {
		t.Error("rules with other names are equal")
	}
}
