package speaker

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/bfd"
	"quayside.io/speaker/bgp"
	"quayside.io/speaker/rtadv"
)

func TestUnnumberedSessionsGoWhereARouterWasFound(t *testing.T) {
	router, own, source := netip.MustParseAddr("fe80::2%eth1"), netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::9")
	in := []announce.Session{
		{Name: "crowd", Interface: "eth3", Port: 179},
		{Name: "found", Interface: "eth1", Port: 179, BFD: &announce.BFD{}},
		{Name: "found from", Interface: "eth1", Port: 179, Source: source},
		{Name: "new", Interface: "eth4"},
		{Name: "none", Interface: "eth2", BFD: &announce.BFD{}},
		{Name: "numbered", Peer: netip.MustParseAddr("10.0.0.1")},
	}
	if got := interfacesOf(in); !slices.Equal(got, []string{"eth1", "eth2", "eth3", "eth4"}) {
		t.Errorf("looks at %v", got)
	}
	out, doubts := located(in, map[string]rtadv.Link{
		"eth1": {Router: router, Own: own}, "eth2": {Problem: "nobody"}, "eth3": {Router: router.WithZone("eth3"), Problem: "two"},
	})
	type found struct {
		peer, source netip.Addr
		doubt        string
	}
	for i, want := range []found{
		{router.WithZone("eth3"), netip.Addr{}, "two"}, {router, own, ""}, {router, source, ""}, {doubt: "the interface was not looked at yet"}, {doubt: "nobody"},
		{peer: netip.MustParseAddr("10.0.0.1")},
	} {
		if got := (found{out[i].Peer, out[i].Source, doubts[out[i].Name]}); got != want {
			t.Errorf("%s: %+v, want %+v", out[i].Name, got, want)
		}
	}
	if in[1].Peer.IsValid() {
		t.Error("the plan was changed")
	}
	// BFD guards the same path, and no path that is not known.
	guards := guards(out, nil).Sessions
	if g := guards["found"]; g.Peer != router || g.Local != own || len(guards) != 1 {
		t.Errorf("guarded: %+v", guards)
	}
}

// That several routers were heard is told of a session that does not come up.
func TestDoubtsAreTold(t *testing.T) {
	states := []bgp.SessionState{{Name: "a", State: "Active", LastError: "refused"}, {Name: "b", State: established}, {Name: "c", State: "Idle", LastError: "two"}}
	told := describeSessions(states, map[string]bfd.Status{}, map[string]string{"a": "two", "b": "two", "c": "two"})
	for i, want := range []string{"refused; two", "", "two"} {
		if got := told[i].LastError; got != want {
			t.Errorf("%s: %q, want %q", told[i].Peer, got, want)
		}
	}
	if at := describeSessions([]bgp.SessionState{{Name: "a", Peer: netip.MustParseAddr("fe80::2%eth1")}}, nil, nil)[0].Address; !strings.HasPrefix(at, "fe80::2%") {
		t.Errorf("address %q", at)
	}
}
