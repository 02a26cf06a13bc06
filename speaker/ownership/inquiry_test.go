package ownership

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

const (
	ownMAC   = "02:00:00:00:00:01" // of n1, who asks
	ownerMAC = "02:00:00:00:00:02" // of n2, who is missed
	otherMAC = "02:00:00:00:00:99" // of nobody that is known
)

// speaks is what the speaker of a node with one interface has published.
func speaks(node, mac, prefix string, says ...v1alpha1.Announcing) *v1alpha1.SpeakerStatus {
	s := &v1alpha1.SpeakerStatus{}
	s.Name = node
	s.Status.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0", MAC: mac, Prefixes: []string{prefix}, Up: true}}
	s.Status.Announcing = says
	return s
}

// Gossip calls n2 dead, and n1 asks the LAN for its address. What it hears, and
// what it hears from the node, decides.
func TestTheLANDecides(t *testing.T) {
	a, at := netip.MustParseAddr(objects.VIP(0)), netip.MustParseAddr("10.0.0.2")
	answers := func(mac string) map[netip.Addr]Found { return map[netip.Addr]Found{a: {MAC: mac}} }
	node := map[string]netip.Addr{"n2": at}
	asked := &Inquiry{Nodes: node}
	kernel := func(l Liveness) map[string]Liveness { return map[string]Liveness{"n2": l} }
	for _, c := range []struct {
		name    string
		heard   Finding
		silent  time.Duration // for how long nobody has answered for it
		refused *announce.Refusal
		again   time.Duration
	}{
		{name: "nobody"},
		{name: "the node that is missed", heard: Finding{Found: answers(ownerMAC)}, refused: &announce.Refusal{Node: "n2", MAC: ownerMAC}, again: retryMember},
		{name: "the node that is missed, whose speaker does not listen", heard: Finding{Found: answers(ownerMAC), Inquiry: asked, Liveness: kernel(Closed)},
			refused: &announce.Refusal{Node: "n2", MAC: ownerMAC}, again: retryMember},
		{name: "a stranger", heard: Finding{Found: answers(otherMAC)}, refused: &announce.Refusal{MAC: otherMAC}, again: retryForeign},
		{name: "itself, by another interface", heard: Finding{Found: answers(ownMAC)}},
		{name: "not even those who should answer", heard: Finding{Deaf: true, Inquiry: asked}, refused: &announce.Refusal{Node: "n2"}, again: retryDeaf},
		{name: "nobody, and a speaker listens", heard: Finding{Inquiry: asked, Liveness: kernel(Listening)}, refused: &announce.Refusal{Node: "n2"}, again: retryMember},
		{name: "nobody, and a speaker listens for too long", heard: Finding{Inquiry: asked, Liveness: kernel(Listening)}, silent: patience},
		{name: "the node, which says nothing of its speaker", heard: Finding{Found: map[netip.Addr]Found{at: {MAC: ownerMAC}}, Inquiry: asked, Liveness: kernel(Silent)},
			refused: &announce.Refusal{Node: "n2"}, again: retryMember},
		{name: "the node, which says that no speaker listens", heard: Finding{Found: map[netip.Addr]Found{at: {MAC: ownerMAC}}, Inquiry: asked, Liveness: kernel(Closed)}},
		{name: "neither the node nor its speaker", heard: Finding{Inquiry: asked, Liveness: kernel(Silent)}},
		{name: "nothing: the question failed", heard: Finding{Err: errors.New("no interface to ask on")}, refused: &announce.Refusal{Node: "n2"}, again: retryFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := alone(t, speaks("n1", ownMAC, "10.0.0.1/24"),
				speaks("n2", ownerMAC, "10.0.0.2/24", v1alpha1.Announcing{Service: "default/s0", Address: a.String(), Protocol: "l2", Epoch: 3}))
			m.lan.asking[a] = struct{}{}
			if c.silent > 0 {
				m.lan.silent[a] = m.now.Add(-c.silent)
			}
			m.compile()
			q := Inquiry{Takes: map[netip.Addr]announce.Take{a: {Address: a, From: "n2", Cause: announce.Died}}}
			if c.heard.Inquiry == asked {
				q.Nodes = node
			}
			c.heard.Inquiry = &q
			c.heard.apply(m)
			if m.lan.isAsking(a) {
				t.Error("it is still asked for")
			}
			if len(q.Nodes) > 0 && m.lan.deaf > 0 != c.heard.Deaf {
				t.Errorf("deaf %d times", m.lan.deaf)
			}
			if c.refused == nil {
				if m.holdings.claims[a] != 4 || len(m.lan.deferred) > 0 || len(told(m)) != 1 {
					t.Errorf("claimed with epoch %d, deferred %v, told %q; want it taken", m.holdings.claims[a], m.lan.deferred, told(m))
				}
				return
			}
			d := m.lan.deferred[a]
			if m.holdings.has(a) || d.Refusal != *c.refused {
				t.Errorf("claimed: %v, refused %+v; want %+v", m.holdings.has(a), d.Refusal, *c.refused)
			}
			if again := d.until.Sub(m.now); again != c.again {
				t.Errorf("asked again in %v, want %v", again, c.again)
			}
			if next := m.wake(); next != c.again {
				t.Errorf("looked at again in %v, want %v", next, c.again)
			}
		})
	}
}

// A stranger turns out to be a member whose status had not come: he is asked
// again soon, since he may die any moment.
func TestAStrangerIsRecognised(t *testing.T) {
	m := alone(t, speaks("n1", ownMAC, "10.0.0.1/24"), speaks("n2", ownerMAC, "10.0.0.2/24"))
	later := m.now.Add(retryForeign)
	of := map[string]netip.Addr{}
	for i, mac := range []string{ownMAC, ownerMAC, otherMAC} {
		of[mac] = netip.MustParseAddr(objects.VIP(i))
		m.lan.deferred[of[mac]] = deferral{Refusal: announce.Refusal{MAC: mac}, until: later}
	}
	m.compile()
	for mac, node := range map[string]string{ownMAC: "", ownerMAC: "n2", otherMAC: ""} {
		d := m.lan.deferred[of[mac]]
		if d.Node != node || d.MAC != mac || d.until.Before(later) != (node != "") {
			t.Errorf("%s: %+v, want node %q", mac, d, node)
		}
	}
	again := m.lan.deferred[of[ownerMAC]].until
	m.now = m.now.Add(time.Millisecond)
	if m.compile(); m.lan.deferred[of[ownerMAC]].until != again {
		t.Error("he is recognised over and over, and never asked again")
	}
}

// An address that is being asked about needs no look before the answer is there,
// nor one that nothing is asked about any more, as this speaker ends: each look is
// a compilation, a hundred in a second.
func TestWhoWaitsForAnAnswerRests(t *testing.T) {
	m := alone(t)
	a := netip.MustParseAddr(objects.VIP(0))
	m.compile()
	m.lan.deferred[a] = deferral{Refusal: announce.Refusal{Node: "n2"}, until: m.now.Add(-time.Second)}
	if next := m.wake(); next > 10*time.Millisecond {
		t.Errorf("looked at in %v", next)
	}
	m.lan.asking[a] = struct{}{}
	if next := m.wake(); next < time.Minute {
		t.Errorf("while it is asked about, looked at in %v", next)
	}
	delete(m.lan.asking, a)
	m.departure.stops.say(m.now, false)
	if next := m.wake(); next < time.Minute {
		t.Errorf("by a speaker that ends, looked at in %v", next)
	}
}

// A stranger claimed an address, and within the minute for which that is told the
// node's link is down and up again. The LAN is asked anew who is there: while what
// was heard before the cut counts, nobody answers.
func TestACutForgetsTheStranger(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	m := alone(t, speaks("n1", ownMAC, "10.0.0.1/24"))
	eth0 := announce.Interface{Name: "eth0", MAC: ownMAC, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, Up: true}
	link := func(up bool, happened ...Event) *Output {
		eth0.Up = up
		w := m.world
		w.Link.Interfaces = []announce.Interface{eth0}
		return m.Step(m.now.Add(time.Second), w, happened...)
	}
	m.holdings.claims[a] = 1
	if out := link(true); len(out.LAN.Addresses) != 1 {
		t.Fatalf("answered for: %v", out.LAN.Addresses)
	}
	link(true, Conflict{Address: a, Interface: "eth0", MAC: otherMAC})
	link(false)
	if _, cut := m.holdings.cut[a]; !cut {
		t.Fatal("it is not cut")
	}
	out := link(true)
	if len(m.plan.L2.Barred) > 0 || !slices.ContainsFunc(m.plan.L2.Take, func(t announce.Take) bool { return t.Address == a && t.Cause == announce.Returned }) {
		t.Errorf("barred: %v, to be asked for: %v", m.plan.L2.Barred, m.plan.L2.Take)
	}
	if len(out.LAN.Addresses) > 0 || !asksFor(out, a) {
		t.Errorf("answered for: %v, asked: %v", out.LAN.Addresses, out.Ask)
	}
}
