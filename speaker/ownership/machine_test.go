package ownership

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// together is a machine of n1, and its world: n2 lives, and the objects are those
// of a fleet of two, and more.
func together(more ...snapshot.Object) (*Machine, World) {
	eth0 := func(mac, prefix string) []announce.Interface {
		return []announce.Interface{{Name: "eth0", MAC: mac, Up: true, Prefixes: []netip.Prefix{netip.MustParsePrefix(prefix)}}}
	}
	return New(Options{Node: "n1", HandOver: 3 * time.Second}), World{
		Cluster: snapshot.Of(append(objects.Fleet(2), more...)...), Synced: true,
		Members: &Members{
			Alive: map[string]struct{}{"n1": {}, "n2": {}}, Settled: true, Claims: map[netip.Addr]announce.Claim{},
			Facts: map[string]announce.Facts{"n2": {Interfaces: eth0(ownerMAC, "10.0.0.2/24")}},
		},
		Link: Link{Interfaces: eth0(ownMAC, "10.0.0.1/24")},
	}
}

// holder is a status by which a node has an address.
func holder(node, mac, address string, epoch int64) *v1alpha1.SpeakerStatus {
	return speaks(node, mac, "10.0.0.9/24", v1alpha1.Announcing{Service: "default/s0", Address: address, Protocol: "l2", Epoch: epoch})
}

// Who is to leave says so, hands over, and ends when a successor has taken what it
// had, or when it has waited for long enough.
func TestWhoLeavesWaitsForItsSuccessors(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	for _, taken := range []bool{true, false} {
		m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
		now := began()
		if out := m.Step(now, w); len(out.LAN.Addresses) != 1 || out.Leaving {
			t.Fatalf("it answers for %v", out.LAN.Addresses)
		}
		out := m.Step(now, w, Leave{})
		if !out.Leaving || out.Members.Facts.Leaving || !out.Report.Status.Leaving || !out.Wake.Equal(now.Add(noticePeriod)) {
			t.Errorf("at first people are told, not the members: %+v", out)
		}
		now = now.Add(noticePeriod)
		if out = m.Step(now, w); !out.Members.Facts.Leaving || out.End != Stays || out.Plan.L2.Answers[a].HandOver != "n2" {
			t.Errorf("then the members, while it still answers: %+v", out.Plan.L2.Answers)
		}
		if len(out.Ask) > 0 {
			t.Error("it asks for more")
		}
		if taken {
			w.Members = w.Members.copied()
			w.Members.Claims[a] = announce.Claim{Epoch: 3, Node: "n2"}
			if out = m.Step(now.Add(time.Second), w); out.End != Done || len(out.LAN.Addresses) > 0 {
				t.Errorf("n2 has it, and n1: end %v, answers for %v", out.End, out.LAN.Addresses)
			}
			continue
		}
		if !out.Wake.Equal(now.Add(3 * time.Second)) {
			t.Errorf("it looks at it again at %v", out.Wake)
		}
		if out = m.Step(out.Wake, w); out.End != Overdue || len(out.Plan.L2.Answers) != 1 {
			t.Errorf("nobody comes: end %v", out.End)
		}
	}
}

// Nobody is there to heed a notice: it ends at once.
func TestTheLastOneLeavesAtOnce(t *testing.T) {
	m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
	w.Members = w.Members.copied()
	delete(w.Members.Alive, "n2")
	m.Step(began(), w)
	if out := m.Step(began(), w, Leave{}); out.End != Done {
		t.Errorf("end %v, wakes at %v", out.End, out.Wake)
	}
}

// A question is put once, until it is answered.
func TestAQuestionIsPutOnce(t *testing.T) {
	m, w := together()
	out := m.Step(began(), w)
	if len(out.Ask) != 1 || len(out.Ask[0].Questions) == 0 || out.Ask[0].Timing != firstClaim() || len(out.Ask[0].Nodes) > 0 {
		t.Fatalf("asked: %+v", out.Ask)
	}
	q := out.Ask[0]
	if out = m.Step(began().Add(time.Second), w); len(out.Ask) > 0 || len(out.LAN.Addresses) > 0 {
		t.Errorf("asked again: %+v, answered for: %v", out.Ask, out.LAN.Addresses)
	}
	out = m.Step(began().Add(time.Second), w, &Finding{Inquiry: q})
	if len(out.LAN.Addresses) != len(q.Questions) || !out.LAN.Added || len(out.Members.Claims) != len(q.Questions) {
		t.Errorf("answered for: %v", out.LAN.Addresses)
	}
	if out = m.Step(began().Add(2*time.Second), w); out.LAN.Added || len(out.Ask) > 0 {
		t.Errorf("once more: %+v", out)
	}
}

// Who waits until another speaker on a member's node is silent has heard that it answers
// at once, and asks for a shorter time than about an address that nobody has answered for.
func TestWhoAnsweredAtOnceIsMissedSoon(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	for mac, want := range map[string]Timing{ownerMAC: repeatedClaim(), otherMAC: firstClaim()} {
		m, w := together()
		out := m.Step(began(), w)
		heard := &Finding{Inquiry: out.Ask[0], Found: map[netip.Addr]Found{a: {MAC: mac}}}
		out = m.Step(began().Add(time.Second), w, heard)
		if len(out.Ask) > 0 {
			t.Fatalf("%s: asked again at once: %+v", mac, out.Ask)
		}
		out = m.Step(out.Wake, w)
		if len(out.Ask) != 1 || out.Ask[0].Timing != want {
			t.Errorf("%s has answered, and is asked again: %+v, want timing %v", mac, out.Ask, want)
		}
	}
}

// An owner whose endpoints end is left the address until the kube-proxy of this
// node, whose endpoint is new, has written its rules.
func TestANewEndpointSettles(t *testing.T) {
	a := netip.MustParseAddr(objects.VIPLocal)
	m, w := together(holder("n2", ownerMAC, objects.VIPLocal, 2), objects.Endpoints("n2"))
	takes := func(at time.Time) bool {
		out := m.Step(at, w)
		return slices.ContainsFunc(out.Changes, func(c Change) bool { return c.Kind == Taken && c.Address == a })
	}
	takes(began())
	moved, yes, no := objects.Endpoints("n2", "n1"), true, false
	moved.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
	w.Cluster = w.Cluster.With(moved)
	if now := began().Add(time.Minute); takes(now) || takes(now.Add(announce.Settling-time.Millisecond)) || !takes(now.Add(announce.Settling)) {
		t.Error("it is taken early, or never")
	}
}

// copied are members of whom something else can be said: what a World holds is read only.
func (m *Members) copied() *Members {
	c := *m
	c.Alive, c.Claims, c.Facts = maps.Clone(m.Alive), maps.Clone(m.Claims), maps.Clone(m.Facts)
	return &c
}
