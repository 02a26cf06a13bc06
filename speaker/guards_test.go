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
	profile := &announce.BFD{Profile: "fast", Receive: 50 * time.Millisecond, Transmit: 60 * time.Millisecond, Multiplier: 5, MinimumTTL: 250, Passive: true}
	got := guards([]announce.Session{
		{Name: "none", Peer: router},
		{Name: "unnumbered", Interface: "eth0", BFD: profile},
		{Name: "far", Peer: router, Source: source, MultiHop: true, BFD: profile},
		{Name: "defaults", Peer: router, BFD: &announce.BFD{}},
	})
	want := map[string]bfd.Session{
		"far":      {Peer: router, Local: source, Multihop: true, MinimumTTL: 250, Transmit: 60 * time.Millisecond, Receive: 50 * time.Millisecond, Multiplier: 5, Passive: true},
		"defaults": {Peer: router},
	}
	if d := cmp.Diff(want, got.Sessions, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
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
