package route_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// TestCanaryDoesNotRedirect: what a canary says of TLS changes nothing for the
// host that it takes requests from.
func TestCanaryDoesNotRedirect(t *testing.T) {
	main, canary := plainIngress("main", "a.example.com", "s", "/"), plainIngress("canary", "a.example.com", "s", "/")
	main.Annotations = map[string]string{route.OwnPrefix + "ssl-redirect": "true"}
	canary.Annotations = map[string]string{route.OwnPrefix + "canary": "true"}
	canary.Spec.TLS = []networkingv1.IngressTLS{{}}
	table := route.Compile(snapshot.Of(plainService("s"), main, canary), nil, route.Options{})
	if r := match(table, "a.example.com", "/"); r == nil || r.RedirectTLS {
		t.Errorf("%+v", r)
	}
}
