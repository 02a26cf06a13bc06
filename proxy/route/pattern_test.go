package route_test

import (
	"testing"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// Patterns of equal length are tried as ingress-nginx tries them, the one that sorts
// last first: wildcards sort before letters, so what is more specific wins.
func TestPatternsOfEqualLength(t *testing.T) {
	regex := map[string]string{route.OwnPrefix + "use-regex": "true"}
	wide, narrow := plainIngress("a", "shop", "public", "/api/.*"), plainIngress("b", "shop", "v1", "/api/v1")
	wide.Annotations, narrow.Annotations = regex, regex
	table := route.Compile(snapshot.Of(plainService("public"), plainService("v1"), wide, narrow), nil, route.Options{})
	for path, want := range map[string]string{"/api/v1/x": "v1", "/API/V1": "v1", "/api/v2": "public"} {
		if got := match(table, "shop", path); got == nil || got.Service.Name != want {
			t.Errorf("%s leads to %+v, want %s", path, got, want)
		}
	}
}

// A canary is for the path that is spelled as its own, also where that is a pattern with
// characters that no path of a request has.
func TestCanariesOfPatterns(t *testing.T) {
	for _, path := range []string{"/api/?(.*)", `/users/\d+`, "/(?:api|users)/1", "/users//1|/users/1"} {
		main, canary := plainIngress("main", "shop", "old", path), plainIngress("new", "shop", "young", path)
		main.Annotations = map[string]string{route.OwnPrefix + "use-regex": "true"}
		canary.Annotations = map[string]string{route.OwnPrefix + "canary": "true", route.OwnPrefix + "canary-by-header": "X-Canary"}
		for _, said := range []string{"", "true"} { // a canary need not say it
			canary.Annotations[route.OwnPrefix+"use-regex"] = said
			table := route.Compile(snapshot.Of(plainService("old"), plainService("young"), main, canary), nil, route.Options{})
			if len(table.Problems) > 0 {
				t.Errorf("%s: %v", path, table.Problems)
			}
			asked := "/users/1"
			if path == "/api/?(.*)" {
				asked = "/api/1"
			}
			for lot, want := range map[string]string{"always": "young", "never": "old"} {
				r := exchange.Request{Host: []byte("shop"), Path: []byte(asked), Method: []byte("GET")}
				r.Header.Add("X-Canary", lot)
				if got, _ := table.Match(&r); got == nil || got.Service.Name != want {
					t.Errorf("%s: %s of %s leads to %+v, want %s", path, lot, asked, got, want)
				}
			}
		}
	}
}
