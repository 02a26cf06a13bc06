package route

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// A Table whose Ingress has only other paths names the same, and says so: else
// everything that is named is gone through for each change. One that names another
// Secret or ConfigMap says no.
func TestSameReferences(t *testing.T) {
	shop := func(path, secret, auth string) *networkingv1.Ingress {
		class, exact := "quayside", networkingv1.PathTypeExact
		in := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "shop", Annotations: map[string]string{
			"ingress.quayside.io/auth-type": "basic", "ingress.quayside.io/auth-secret": auth}}}
		in.Spec.IngressClassName = &class
		in.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.example.com"}, SecretName: secret}}
		in.Spec.Rules = []networkingv1.IngressRule{{Host: "shop.example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &exact, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "shop", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}
		return in
	}
	first := Compile(snapshot.Of(shop("/a", "cert", "users")), nil, Options{DefaultCertificate: snapshot.Key{Namespace: "b", Name: "default"}})
	secrets := first.Secrets()
	slices.SortFunc(secrets, snapshot.Key.Compare)
	if want := []snapshot.Key{{Namespace: "a", Name: "cert"}, {Namespace: "a", Name: "users"}, {Namespace: "b", Name: "default"}}; !slices.Equal(secrets, want) {
		t.Errorf("named are %v, wanted %v", secrets, want)
	}
	first = Compile(snapshot.Of(shop("/a", "cert", "users")), nil, Options{})
	for _, c := range []struct {
		name string
		now  *networkingv1.Ingress
		same bool
	}{
		{"another path", shop("/b", "cert", "users"), true},
		{"another certificate", shop("/a", "other", "users"), false},
		{"other users", shop("/a", "cert", "others"), false},
	} {
		if got := Compile(snapshot.Of(c.now), first, Options{}).SameReferences(first); got != c.same {
			t.Errorf("%s: the same references: %v", c.name, got)
		}
	}
}
