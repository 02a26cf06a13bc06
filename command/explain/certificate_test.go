package explain

import (
	"slices"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// The link "certificate" is what a browser would say of it.
func TestTraceLooksAtTheCertificate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		until time.Time
		host  string
		rsa   time.Time // until when another is good, with a key of RSA; zero: there is none
		want  []Link
	}{
		"valid": {now.Add(time.Minute), "shop.example.com", time.Time{},
			[]Link{{Name: "certificate", State: Works, Says: "for shop.example.com, until 2026-03-01"}}},
		"expired": {now.Add(-time.Minute), "shop.example.com", time.Time{},
			[]Link{{Name: "certificate", State: Broken, Says: "expired at 2026-03-01 11:59 UTC; renew it in the Secret that spec.tls of Ingress shop/site names"}}},
		"of another host": {now.Add(time.Minute), "www.example.com", time.Time{},
			[]Link{{Name: "certificate", State: Broken, Says: "x509: certificate is valid for www.example.com, not shop.example.com; " +
				"the certificate in Secret shop/tls is not for host shop.example.com but for www.example.com, so clients get the default certificate; name a Secret whose certificate is for that host"}}},
		"of two kinds": {now.Add(time.Minute), "shop.example.com", now.Add(-time.Minute),
			[]Link{{Name: "certificate", State: Works, Says: "that with ECDSA: for shop.example.com, until 2026-03-01"},
				{Name: "certificate", State: Broken, Says: "that with RSA: expired at 2026-03-01 11:59 UTC; renew it in the Secret that spec.tls of Ingress shop/site names"}}},
	} {
		t.Run(name, func(t *testing.T) {
			to, err := ParseTarget("https://shop.example.com/")
			if err != nil {
				t.Fatal(err)
			}
			class, prefix := "quayside", networkingv1.PathTypePrefix
			site := &networkingv1.Ingress{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site"},
				Spec: networkingv1.IngressSpec{
					IngressClassName: &class,
					TLS:              []networkingv1.IngressTLS{{Hosts: []string{"shop.example.com"}, SecretName: "tls"}},
					Rules: []networkingv1.IngressRule{{Host: "shop.example.com", IngressRuleValue: networkingv1.IngressRuleValue{
						HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
							Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
								Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}},
						}}},
					}}},
				},
			}
			objects := []snapshot.Object{site, certificate.Secret(t, "shop/tls", c.until, c.host)}
			if !c.rsa.IsZero() {
				site.Spec.TLS = append(site.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{"shop.example.com"}, SecretName: "rsa"})
				objects = append(objects, certificate.RSA(t, "shop/rsa", c.rsa, c.host))
			}
			world := snapshot.Of(objects...)
			inputs := inputsOf(world, now, false, false)
			inputs.Routes = route.Compile(world, nil, route.Options{Now: now, DefaultCertificate: snapshot.Key{Namespace: "shop", Name: "tls"}})
			got := slices.DeleteFunc(Trace(inputs, to).Links, func(l Link) bool { return l.Name != "certificate" })
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
