package route_test

import (
	"crypto/x509/pkix"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// A certificate without a subjectAltName is for its common name, as in ingress-nginx, and for
// nothing else; whoever made it is told that browsers refuse it.
func TestCommonNameCounts(t *testing.T) {
	root := certificate.Root(t, "root")
	secret := root.Client(t, pkix.Name{CommonName: "shop.test"}, nil).Secret(t, "n", "old", root)
	ing := plainIngress("i", "shop.test", "s", "/")
	for _, c := range []struct {
		host, reason string
		shown        int
	}{{"shop.test", route.CertificateNameless, 1}, {"other.test", route.CertificateMismatch, 0}, {"", route.CertificateNameless, 1}} {
		ing.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "old"}}
		if c.host != "" {
			ing.Spec.TLS[0].Hosts = []string{c.host}
		}
		table := route.Compile(snapshot.Of(plainService("s"), ing, secret), nil, route.Options{})
		if got := table.Certificates("shop.test"); len(got) != c.shown || len(table.Problems) != 1 || table.Problems[0].Reason != c.reason {
			t.Errorf("tls entry for %q: shop.test has %d certificates, and this is told: %v", c.host, len(got), table.Problems)
		}
	}
}
