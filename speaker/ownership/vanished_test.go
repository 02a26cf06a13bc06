package ownership

import (
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// An address leaves the pool, and is given to another host or to none; then it is in the
// pool again. Gossip still has the claim of the node that had it, which asks the LAN
// before it answers.
func TestAnAddressThatWasAwayIsAskedFor(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	claim := announce.Claim{Epoch: 2, Node: "n1"}
	pool := func(addresses string) *v1alpha1.IPAddressPool {
		return &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{addresses}}}
	}
	for name, found := range map[string]map[netip.Addr]Found{
		"nobody has it": {},
		"a host has it": {a: {Interface: "eth0", MAC: otherMAC}},
	} {
		m, w := together(holder("n1", ownMAC, objects.VIP(0), claim.Epoch))
		now := began()
		step := func(events ...Event) *Output {
			now = now.Add(time.Second)
			return m.Step(now, w, events...)
		}
		answers := func(out *Output) bool { _, ok := out.LAN.Addresses[a]; return ok }
		if !answers(step()) {
			t.Fatalf("%s: it does not answer for what it has", name)
		}
		w.Members = w.Members.copied()
		w.Members.Claims[a] = claim
		w.Cluster = w.Cluster.With(pool("10.0.8.0/21"), speaks("n1", ownMAC, "10.0.0.1/24"))
		if answers(step()) {
			t.Fatalf("%s: it answers for what is in no pool", name)
		}
		w.Cluster = w.Cluster.With(pool("10.0.0.40-10.0.0.199"))
		out := step()
		if answers(out) || len(out.Ask) != 1 || out.Ask[0].Takes[a].Cause != announce.Returned {
			t.Fatalf("%s: back in the pool, it answers for %v and asks %+v", name, out.LAN.Addresses, out.Ask)
		}
		out = step(&Finding{Inquiry: out.Ask[0], Found: found})
		if answers(out) != (len(found) == 0) || out.Members.Claims[a] != claim.Epoch && answers(out) {
			t.Errorf("%s: it answers for %v, and claims %v", name, out.LAN.Addresses, out.Members.Claims)
		}
		if now = now.Add(time.Hour); len(found) > 0 {
			continue
		}
		if out = step(); !answers(out) || len(out.Ask) > 0 {
			t.Errorf("%s: later it answers for %v, and asks %+v", name, out.LAN.Addresses, out.Ask)
		}
	}
}
