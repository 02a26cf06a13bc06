package announce

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// n2, which holds the address, may not serve it as n1 sees it: n1 takes it, and
// asks before where it has reason to believe that it is the one who lags.
func TestWhoHasLostAnAddressDoubts(t *testing.T) {
	a := netip.MustParseAddr(sharedAddress)
	local := sharer("a", 80)
	local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	full := said("n2", 1)
	full.Status.Announcing[0].Address, full.Status.AnnouncingCount = "10.0.0.51", maxAnnouncing+1
	other := said("n2", 2)
	other.Status.Announcing[0].Protocol = "bgp"
	for _, c := range []struct {
		name   string
		shown  *v1alpha1.SpeakerStatus // of n2
		lost   int
		leaves bool
		to     Claim // what n2 says it hands the address over to
		doubts bool
	}{
		{name: "never lost"},
		{name: "never lost, and shown", shown: said("n2", 2)},
		{name: "lost", lost: 1, doubts: true},
		{name: "lost, and shown", shown: said("n2", 2), lost: 1},
		{name: "lost, and shown before", shown: said("n2", 1), lost: 1, doubts: true},
		{name: "lost, and shown for another protocol", shown: other, lost: 1, doubts: true},
		{name: "lost to one who has more than is shown", shown: full, lost: 1},
		{name: "lost again", shown: said("n2", 2), lost: flapLimit - 1},
		{name: "lost again and again", shown: said("n2", 2), lost: flapLimit, doubts: true},
		{name: "lost again and again to one who leaves", shown: said("n2", 2), lost: flapLimit, leaves: true},
		{name: "lost, and handed over", lost: 1, to: Claim{3, "n1"}},
		{name: "lost again and again, and handed over", shown: said("n2", 2), lost: flapLimit, to: Claim{3, "n1"}},
		{name: "lost, and handed over to another", lost: 1, to: Claim{3, "n3"}, doubts: true},
		{name: "lost, and handed over before it was taken again", lost: 1, to: Claim{2, "n1"}, doubts: true},
	} {
		objects := []snapshot.Object{readyNode("n1", ""), readyNode("n2", ""), lanPool("10.0.0.40-10.0.0.60"), local, endpointsOf("a", discoveryv1.AddressTypeIPv4, "n1")}
		if c.leaves {
			objects = append(objects, endpointsOf("a", discoveryv1.AddressTypeIPv4, "n2"))
		}
		if c.shown != nil {
			objects = append(objects, c.shown)
		}
		v := View{Alive: living("n1", "n2"), Claims: held("n2", 2), Facts: map[string]Facts{"n2": {Leaving: c.leaves, HandsOver: map[netip.Addr]Claim{a: c.to}}}, Lost: map[netip.Addr]Loss{}}
		for range c.lost {
			v.Lost[a] = v.Lost[a].Again(epoch0())
		}
		p := Compile(snapshot.Of(objects...), "n1", v, epoch0(), Options{})
		if len(p.L2.Take) != 1 || p.L2.Take[0].Doubtful != c.doubts || p.L2.Take[0].Epoch != 3 || p.L2.Take[0].From != "n2" {
			t.Errorf("%s: takes %+v, want one, doubtful: %v", c.name, p.L2.Take, c.doubts)
			continue
		}
		// An answer of the owner is no refusal, unless it is doubted that he lets go.
		v.Refused = map[netip.Addr]Refusal{a: {Node: "n2"}}
		if p := Compile(snapshot.Of(objects...), "n1", v, epoch0(), Options{}); (len(p.L2.Barred) == 1) != c.doubts || len(p.L2.Take)+len(p.L2.Barred) != 1 {
			t.Errorf("%s: refused, and takes %+v, is barred from %+v", c.name, p.L2.Take, p.L2.Barred)
		}
	}
}

// Losses count in a row; one that comes late begins a new one.
func TestLossesInARow(t *testing.T) {
	var l Loss
	for i, after := range []time.Duration{0, flapWindow, 2 * flapWindow} {
		if l = l.Again(epoch0().Add(after)); l.Times != i+1 {
			t.Errorf("%d losses counted, want %d", l.Times, i+1)
		}
	}
	if l = l.Again(epoch0().Add(3*flapWindow + time.Second)); l.Times != 1 {
		t.Errorf("%d losses counted after a pause", l.Times)
	}
}
