package speaker

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
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
	a, at := netip.MustParseAddr(vip(0)), netip.MustParseAddr("10.0.0.2")
	answers := func(mac string) map[netip.Addr]l2.Found { return map[netip.Addr]l2.Found{a: {MAC: mac}} }
	node := map[string]netip.Addr{"n2": at}
	pulse := func(p members.Pulse) map[string]members.Pulse { return map[string]members.Pulse{"n2": p} }
	for _, c := range []struct {
		name    string
		heard   verdict
		silent  time.Duration // for how long nobody has answered for it
		refused *announce.Refusal
		again   time.Duration
	}{
		{name: "nobody"},
		{name: "the node that is missed", heard: verdict{found: answers(ownerMAC)}, refused: &announce.Refusal{Node: "n2", MAC: ownerMAC}, again: retryMember},
		{name: "the node that is missed, whose speaker does not listen", heard: verdict{found: answers(ownerMAC), nodes: node, pulses: pulse(members.Refused)},
			refused: &announce.Refusal{Node: "n2", MAC: ownerMAC}, again: retryMember},
		{name: "a stranger", heard: verdict{found: answers(otherMAC)}, refused: &announce.Refusal{MAC: otherMAC}, again: retryStranger},
		{name: "itself, by another interface", heard: verdict{found: answers(ownMAC)}},
		{name: "not even those who should answer", heard: verdict{deaf: true, nodes: node}, refused: &announce.Refusal{Node: "n2"}, again: retryMember},
		{name: "nobody, and a speaker listens", heard: verdict{nodes: node, pulses: pulse(members.Listening)}, refused: &announce.Refusal{Node: "n2"}, again: retryMember},
		{name: "nobody, and a speaker listens for too long", heard: verdict{nodes: node, pulses: pulse(members.Listening)}, silent: patience},
		{name: "the node, which says nothing of its speaker", heard: verdict{found: map[netip.Addr]l2.Found{at: {MAC: ownerMAC}}, nodes: node, pulses: pulse(members.Silent)},
			refused: &announce.Refusal{Node: "n2"}, again: retryMember},
		{name: "the node, which says that no speaker listens", heard: verdict{found: map[netip.Addr]l2.Found{at: {MAC: ownerMAC}}, nodes: node, pulses: pulse(members.Refused)}},
		{name: "neither the node nor its speaker", heard: verdict{nodes: node, pulses: pulse(members.Silent)}},
		{name: "nothing: the question failed", heard: verdict{err: errors.New("no interface to ask on")}, refused: &announce.Refusal{Node: "n2"}, again: retryFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, notes := thinker(t, speaks("n1", ownMAC, "10.0.0.1/24"),
				speaks("n2", ownerMAC, "10.0.0.2/24", v1alpha1.Announcing{Service: "default/s0", Address: a.String(), Protocol: "l2", Epoch: 3}))
			m.asking, m.silent = map[netip.Addr]struct{}{a: {}}, map[netip.Addr]time.Time{}
			if c.silent > 0 {
				m.silent[a] = time.Now().Add(-c.silent)
			}
			m.compile()
			c.heard.asked = map[netip.Addr]announce.Take{a: {Address: a, From: "n2", Cause: announce.Died}}
			before := time.Now()
			m.hear(c.heard)
			if _, asking := m.asking[a]; asking {
				t.Error("it is still asked for")
			}
			if len(c.heard.nodes) > 0 && m.deaf != c.heard.deaf {
				t.Errorf("deaf: %v", m.deaf)
			}
			if c.refused == nil {
				if m.mine[a] != 4 || len(m.refused) > 0 || len(notes.heard) != 1 {
					t.Errorf("claimed with epoch %d, refused %v, told %q; want it taken", m.mine[a], m.refused, notes.heard)
				}
				return
			}
			r := m.refused[a]
			if m.claims(a) || r.Refusal != *c.refused {
				t.Errorf("claimed: %v, refused %+v; want %+v", m.claims(a), r.Refusal, *c.refused)
			}
			if r.retry.Before(before.Add(c.again)) || r.retry.After(time.Now().Add(c.again)) {
				t.Errorf("asked again in %v, want %v", r.retry.Sub(before), c.again)
			}
			if next := m.nextRetry(); next > c.again {
				t.Errorf("looked at again in %v, want %v", next, c.again)
			}
		})
	}
}

// A stranger turns out to be a member whose status had not come: he is asked
// again soon, since he may die any moment.
func TestAStrangerIsRecognised(t *testing.T) {
	m, _ := thinker(t, speaks("n1", ownMAC, "10.0.0.1/24"), speaks("n2", ownerMAC, "10.0.0.2/24"))
	later := time.Now().Add(retryStranger)
	of := map[string]netip.Addr{}
	for i, mac := range []string{ownMAC, ownerMAC, otherMAC} {
		of[mac] = netip.MustParseAddr(vip(i))
		m.refused[of[mac]] = refusal{Refusal: announce.Refusal{MAC: mac}, retry: later}
	}
	m.compile()
	for mac, node := range map[string]string{ownMAC: "", ownerMAC: "n2", otherMAC: ""} {
		r := m.refused[of[mac]]
		if r.Node != node || r.MAC != mac || r.retry.Before(later) != (node != "") {
			t.Errorf("%s: %+v, want node %q", mac, r, node)
		}
	}
	again := m.refused[of[ownerMAC]].retry
	if m.compile(); m.refused[of[ownerMAC]].retry != again {
		t.Error("he is recognised over and over, and never asked again")
	}
}

// An address that is being asked about needs no look before the answer is there,
// nor one that nothing is asked about any more, as this speaker ends: each look is
// a compilation, a hundred in a second.
func TestWhoWaitsForAnAnswerRests(t *testing.T) {
	m, _ := thinker(t)
	a := netip.MustParseAddr(vip(0))
	m.refused[a] = refusal{Refusal: announce.Refusal{Node: "n2"}, retry: time.Now().Add(-time.Second)}
	if next := m.nextRetry(); next > 10*time.Millisecond {
		t.Errorf("looked at in %v", next)
	}
	m.asking = map[netip.Addr]struct{}{a: {}}
	if next := m.nextRetry(); next < time.Minute {
		t.Errorf("while it is asked about, looked at in %v", next)
	}
	delete(m.asking, a)
	m.stops.say(time.Now(), false)
	if next := m.nextRetry(); next < time.Minute {
		t.Errorf("by a speaker that ends, looked at in %v", next)
	}
}

// A stranger claimed an address, and within the minute for which that is told the
// node's link is down and up again. The LAN is asked anew who is there: while what
// was heard before the cut counts, nobody answers.
func TestACutForgetsTheStranger(t *testing.T) {
	m, _ := thinker(t, speaks("n1", ownMAC, "10.0.0.1/24"))
	a := netip.MustParseAddr(vip(0))
	m.mine[a], m.cut, m.answered = 1, map[netip.Addr]struct{}{}, map[netip.Addr][]string{a: {"eth0"}}
	m.stranger(l2.Conflict{Address: a, Interface: "eth0", MAC: otherMAC})
	m.compile()
	known := map[netip.Addr]struct{}{a: {}}
	m.self.Interfaces = []announce.Interface{{Name: "eth0"}} // down
	m.noteCut(&l2.Want{}, known)
	m.compile() // eth0 is up again, as the status says
	if _, cut := m.cut[a]; !cut {
		t.Fatal("it is not cut")
	}
	if len(m.plan.L2.Barred) > 0 || !slices.ContainsFunc(m.plan.L2.Take, func(t announce.Take) bool { return t.Address == a && t.Cause == announce.Returned }) {
		t.Errorf("barred: %v, to be asked for: %v", m.plan.L2.Barred, m.plan.L2.Take)
	}
}
