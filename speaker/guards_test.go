package speaker

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/bfd"
	"quayside.io/speaker/bgp"
)

func TestGuardsOfSessions(t *testing.T) {
	router, source := netip.MustParseAddr("10.0.0.254"), netip.MustParseAddr("10.0.0.1")
	beyond := netip.MustParseAddr("10.7.0.1")
	profile := &announce.BFD{Profile: "fast", Receive: 50 * time.Millisecond, Transmit: 60 * time.Millisecond, Multiplier: 5, MinimumTTL: 250, Passive: true}
	sessions := []announce.Session{
		{Name: "none", Peer: router},
		{Name: "unnumbered", Interface: "eth0", BFD: profile},
		{Name: "far", Peer: router, Source: source, MultiHop: true, BFD: profile},
		{Name: "defaults", Peer: router, ASN: 1, PeerASN: 2, BFD: &announce.BFD{}},
		{Name: "inner", Peer: router, ASN: 1, PeerASN: 1, BFD: &announce.BFD{}},
		{Name: "inner far", Peer: beyond, ASN: 1, PeerASN: 1, BFD: &announce.BFD{}},
		{Name: "inner dynamic", Peer: beyond, ASN: 1, Kinship: announce.Internal, BFD: &announce.BFD{}},
		{Name: "in a VRF", Peer: router, VRF: "red", BFD: &announce.BFD{}},
		{Name: "outer", Peer: beyond, ASN: 1, PeerASN: 2, BFD: &announce.BFD{}},
	}
	got := guards(sessions, []announce.Interface{{Name: "eth0", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}})
	want := map[string]bfd.Session{
		"far":      {Peer: router, Local: source, Multihop: true, MinimumTTL: 250, Transmit: 60 * time.Millisecond, Receive: 50 * time.Millisecond, Multiplier: 5, Passive: true},
		"defaults": {Peer: router},
		"inner":    {Peer: router}, "inner far": {Peer: beyond, Multihop: true}, "inner dynamic": {Peer: beyond, Multihop: true}, "outer": {Peer: beyond}, "in a VRF": {Peer: router, VRF: "red"},
	}
	if d := cmp.Diff(want, got.Sessions, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
	if guards(sessions, nil).Sessions["inner far"].Multihop {
		t.Error("a router is taken for far away while no link is known")
	}
}

func TestFailuresReachTheirSession(t *testing.T) {
	before := &bgp.Want{Sessions: []bgp.Session{{Name: "a"}, {Name: "b", Failures: 2}}, Draining: true}
	after := guarded(before, map[string]bfd.Status{"a": {Failures: 3}, "stranger": {Failures: 9}})
	if after.Sessions[0].Failures != 3 || after.Sessions[1].Failures != 0 || !after.Draining {
		t.Errorf("%+v", after)
	}
	if before.Sessions[0].Failures != 0 {
		t.Error("what was Set before was changed")
	}
}
