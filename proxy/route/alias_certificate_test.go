package route_test

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// The other names of a host are shown its certificate, where that covers them: a browser
// that refuses the certificate never sees the redirect.
func TestOtherNamesHaveTheCertificate(t *testing.T) {
	until := time.Now().AddDate(0, 1, 0)
	ing := plainIngress("i", "shop.test", "s", "/")
	ing.Annotations = map[string]string{route.OwnPrefix + "from-to-www-redirect": "true", route.OwnPrefix + "server-alias": "alias.test,bare.test"}
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.test"}, SecretName: "shop"}}
	table := route.Compile(snapshot.Of(plainService("s"), ing, certificate.Secret(t, "n/shop", until, "shop.test", "www.shop.test", "alias.test")), nil, route.Options{})
	for name, want := range map[string]int{"shop.test": 1, "www.shop.test": 1, "alias.test": 1, "bare.test": 0} {
		if got := table.Certificates(name); len(got) != want {
			t.Errorf("%s has %d certificates, want %d", name, len(got), want)
		}
	}
	if len(table.Problems) > 0 {
		t.Error(table.Problems)
	}
	// Whoever brings its own keeps it.
	ing.Spec.TLS = append(ing.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{"alias.test"}, SecretName: "alias"})
	table = route.Compile(snapshot.Of(plainService("s"), ing, certificate.Secret(t, "n/shop", until, "shop.test", "alias.test"),
		certificate.Secret(t, "n/alias", until, "alias.test", "its.own.test")), nil, route.Options{})
	if got := table.Certificates("alias.test"); len(got) != 1 || len(got[0].Leaf.DNSNames) != 2 || got[0].Leaf.DNSNames[1] != "its.own.test" {
		t.Errorf("alias.test has %d certificates, or another than its own", len(got))
	}
}

// A host that is only redirected from needs no backend: it is not closed for want of the
// Service behind the first path of the other.
func TestOtherNameIsRedirectedWithoutAService(t *testing.T) {
	ing := plainIngress("i", "shop.test", "missing", "/")
	ing.Annotations = map[string]string{route.OwnPrefix + "from-to-www-redirect": "true"}
	table := route.Compile(snapshot.Of(ing), nil, route.Options{})
	for r := range table.Routes() {
		switch closed := r.Closed != ""; {
		case closed == (r.Host == "www.shop.test"):
			t.Errorf("%s: closed %q", r.Host, r.Closed)
		case !closed && (r.Filters == nil || r.Filters.CanonicalHost != "shop.test"):
			t.Errorf("%s is not redirected", r.Host)
		}
	}
}
