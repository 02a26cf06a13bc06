package route_test

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// canaryWorld is an Ingress, its canary that all new clients get by a header, and what
// of them is said by annotations.
func canaryWorld(uid types.UID, main, canary map[string]string) *snapshot.Cluster {
	of := func(name, service string, said map[string]string) *networkingv1.Ingress {
		ing := plainIngress(name, "shop", service, "/")
		ing.Annotations = map[string]string{}
		for key, value := range said {
			ing.Annotations[route.OwnPrefix+key] = value
		}
		return ing
	}
	all := map[string]string{"canary": "true", "canary-by-header": "X-Canary"}
	maps.Copy(all, canary)
	old, young := plainService("old"), plainService("young")
	old.UID, young.UID = "old", uid
	return snapshot.Of(old, young, of("main", "old", main), of("new", "young", all))
}

// visitShop asks as a client with these fields, and returns the Service that answers and
// the fields with which the client comes back.
func visitShop(t *testing.T, c *snapshot.Cluster, table *route.Table, lot, cookie string) (service, kept string) {
	t.Helper()
	r := exchange.Request{Host: []byte("shop"), Path: []byte("/"), Method: []byte("GET")}
	r.Header.Add("X-Canary", lot)
	r.Header.Add("Cookie", "a=b; "+cookie)
	found, _ := table.Match(&r)
	to := table.Backends[found.Backend]
	svc, _ := c.Services.Get(to.Service)
	svc = svc.DeepCopy()
	svc.Spec.Type, svc.Spec.ExternalName = "ExternalName", "10.0.0.1" // an endpoint without slices
	set := balance.Compile(svc, nil, to.Port, "", "", balance.Options{Policy: to.Policy,
		External: balance.External{Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}})
	ses := set.Session(&r, 7)
	var answer exchange.Header
	set.TellClient(&ses, 0, &r, &answer, time.Unix(0, 0))
	if told := answer.Get("Set-Cookie"); told != nil {
		cookie = string(told)
	}
	return to.Service.Name, cookie
}

// Whoever has a session keeps it, whatever the lot says: with the Ingress always, and
// with its canary too unless affinity-canary-behavior says legacy.
func TestCanarySessions(t *testing.T) {
	session := map[string]string{"affinity": "cookie", "session-cookie-name": "route"}
	own := map[string]string{"affinity": "cookie", "session-cookie-name": "mine", "affinity-canary-behavior": "legacy"}
	for _, k := range []struct {
		name         string
		main, canary map[string]string
		// Where a client that was sent to the canary first goes when its lot says
		// never, and one that was not when it says always.
		young, old string
	}{
		{"no session", nil, nil, "old", "young"},
		{"sticky by default", session, nil, "young", "old"},
		{"sticky", session, map[string]string{"affinity-canary-behavior": "sticky"}, "young", "old"},
		{"not understood", session, map[string]string{"affinity-canary-behavior": "loose"}, "young", "old"},
		{"legacy", session, map[string]string{"affinity-canary-behavior": "legacy"}, "old", "old"},
		{"legacy with its own", session, own, "young", "old"},
		{"of the canary alone", nil, own, "young", "young"},
		{"of the canary alone, which is not sticky", nil, map[string]string{"affinity": "cookie"}, "old", "young"},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := canaryWorld("young", k.main, k.canary)
			table := route.Compile(c, nil, route.Options{})
			for lot, want := range map[string]string{"always": k.young, "never": k.old} {
				first, cookie := visitShop(t, c, table, lot, "")
				if (first == "young") != (lot == "always") {
					t.Fatalf("a new client with %s is at %s", lot, first)
				}
				other := map[string]string{"always": "never", "never": "always"}[lot]
				if again, _ := visitShop(t, c, table, other, cookie); again != want {
					t.Errorf("a client that was at %s is at %s now, want %s (%s)", first, again, want, cookie)
				}
			}
		})
	}
}

// A canary follows the sessions of its Ingress, and a Service that was made anew knows
// none of the old ones; what it does not need any more is given back.
func TestCanarySessionsFollow(t *testing.T) {
	session := map[string]string{"affinity": "cookie"}
	c := canaryWorld("young", session, nil)
	table := route.Compile(c, nil, route.Options{})
	_, cookie := visitShop(t, c, table, "always", "")
	anew := canaryWorld("another", session, nil)
	table = route.Compile(anew, table, route.Options{})
	if at, _ := visitShop(t, anew, table, "never", cookie); at != "old" {
		t.Errorf("a session with a Service that is gone leads to %s", at)
	}
	for range 10 {
		table = route.Compile(canaryWorld("young", map[string]string{"affinity": "cookie", "session-cookie-name": "x"}, nil), table, route.Options{})
		c = canaryWorld("young", session, nil)
		table = route.Compile(c, table, route.Options{})
	}
	if at, _ := visitShop(t, c, table, "never", cookie); at != "young" {
		t.Errorf("a session with the canary leads to %s", at)
	}
	plain := canaryWorld("young", nil, nil)
	table = route.Compile(plain, table, route.Options{})
	used := 0
	for _, b := range table.Backends {
		if b != (route.Backend{}) {
			used++
		}
	}
	if used != 2 {
		t.Errorf("%d backends are left of two: %+v", used, table.Backends)
	}
}

// Neither who has a session nor who has none costs memory.
func TestCanarySessionsDoNotAllocate(t *testing.T) {
	c := canaryWorld("young", map[string]string{"affinity": "cookie"}, nil)
	table := route.Compile(c, nil, route.Options{})
	for _, lot := range []string{"always", "never"} {
		_, cookie := visitShop(t, c, table, lot, "")
		r := exchange.Request{Host: []byte("shop"), Path: []byte("/"), Method: []byte("GET")}
		r.Header.Add("Cookie", "a=b; "+cookie)
		if n := testing.AllocsPerRun(100, func() { table.Match(&r) }); n != 0 {
			t.Errorf("%v allocations for a client that was told %s", n, lot)
		}
	}
}
