package ownership

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// TestAConflictIsToldUntilItEnds: the node keeps the address, and its Service hears of the
// other host for as long as that has not been silent for a while.
func TestAConflictIsToldUntilItEnds(t *testing.T) {
	a, now := netip.MustParseAddr(objects.VIP(0)), began()
	m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
	contested := func(out *Output) bool {
		return slices.ContainsFunc(out.Report.Own, func(p snapshot.Problem) bool {
			return p.Reason == "AddressInUse" && p.Object.Name == "s0" && strings.Contains(p.Message, otherMAC)
		})
	}
	m.Step(now, w)
	out := m.Step(now, w, Conflict{Address: a, Interface: "eth0", MAC: otherMAC})
	want := Change{Kind: Contested, Take: announce.Take{Address: a}, By: announce.Refusal{MAC: otherMAC}, Interface: "eth0"}
	if len(out.Changes) != 1 || fmt.Sprint(out.Changes[0]) != fmt.Sprint(want) {
		t.Errorf("changes %+v, wanted %+v", out.Changes, want)
	}
	for _, c := range []struct {
		after time.Duration
		told  bool
	}{{0, true}, {6 * retryForeign, true}, {6*retryForeign + time.Second, false}} {
		m.Step(now.Add(c.after), w) // what is over is noticed in a step, and not told from the next
		if out = m.Step(now.Add(c.after), w); contested(out) != c.told || len(out.LAN.Addresses) != 1 {
			t.Errorf("after %v: told %v, announced %v", c.after, contested(out), out.LAN.Addresses)
		}
	}
}

// TestGossipThatFailsIsTold, though not for as long as a start takes.
func TestGossipThatFailsIsTold(t *testing.T) {
	m, w := together()
	w.Members = &Members{Waiting: "waiting for the members key"}
	if out := m.Step(began(), w); len(out.Report.Own) > 0 || !out.Wake.Equal(began().Add(startGrace)) {
		t.Errorf("told %q at once; looks again at %v", out.Report.Own, out.Wake)
	}
	out := m.Step(began().Add(startGrace), w)
	if len(out.Report.Own) != 1 || out.Report.Own[0].Reason != "SpeakerWaiting" || !strings.HasSuffix(out.Report.Own[0].Message, w.Members.Waiting) {
		t.Errorf("told %q", out.Report.Own)
	}
}

// TestATakenAddressIsToldOnce: when it is taken, and not in the steps that follow.
func TestATakenAddressIsToldOnce(t *testing.T) {
	m, w := together()
	asked := m.Step(began(), w).Ask[0]
	told := func(out *Output) (n int) {
		for _, e := range out.Report.Events {
			if e.About.Name == "s0" {
				n++
			}
		}
		return n
	}
	if n := told(m.Step(began().Add(time.Second), w, &Finding{Inquiry: asked})); n != 1 {
		t.Errorf("told %d times", n)
	}
	if n := told(m.Step(began().Add(2*time.Second), w)); n != 0 {
		t.Errorf("told %d times more", n)
	}
}

// TestAHandOverIsBounded: who may not keep an address answers for it until its successor
// does, but not for ever.
func TestAHandOverIsBounded(t *testing.T) {
	a, now := netip.MustParseAddr(objects.VIPLocal), began()
	status := holder("n1", ownMAC, objects.VIPLocal, 2)
	status.Status.Announcing[0].Service = "default/local"
	m, w := together(status)
	w.Cluster = w.Cluster.With(objects.Endpoints("n1"))
	step := func(after time.Duration) bool {
		now = now.Add(after)
		_, answers := m.Step(now, w).LAN.Addresses[a]
		return answers
	}
	if !step(0) {
		t.Fatal("it does not answer")
	}
	w.Cluster = w.Cluster.With(objects.Endpoints("n2"))
	for i := range 5 {
		if !step(time.Second) {
			t.Errorf("it stops %d s after its endpoint, and nobody has followed", i)
		}
	}
	if step(2 * time.Second) {
		t.Error("it answers on without an endpoint")
	}
}

// TestWhatWasCutIsAskedFor: while the link of a node was down, another may have taken what
// it had.
func TestWhatWasCutIsAskedFor(t *testing.T) {
	a, now := netip.MustParseAddr(objects.VIP(0)), began()
	for _, down := range []bool{true, false} {
		m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
		w.Members = &Members{Alive: map[string]struct{}{"n1": {}}, Settled: true}
		if out := m.Step(now, w); len(out.LAN.Addresses) != 1 {
			t.Fatalf("it answers for %v", out.LAN.Addresses)
		}
		there := w.Link.Interfaces
		if w.Link.Interfaces = slices.Clone(there); down {
			w.Link.Interfaces[0].Up = false
		} else {
			w.Link.Interfaces = w.Link.Interfaces[:0]
		}
		if out := m.Step(now.Add(time.Second), w); len(out.LAN.Addresses) != 0 {
			t.Errorf("without a link it answers for %v", out.LAN.Addresses)
		}
		w.Link.Interfaces = there
		out := m.Step(now.Add(2*time.Second), w)
		if _, answers := out.LAN.Addresses[a]; answers {
			t.Error("it answers before it has asked")
		}
		if !asksFor(out, a) {
			t.Errorf("it asks %+v", out.Ask)
		}
	}
}

// TestWhenTheLANIsAskedAgain: when the time has come, or there is no doubt any more.
func TestWhenTheLANIsAskedAgain(t *testing.T) {
	a, now := netip.MustParseAddr(objects.VIP(0)), began()
	for _, c := range []struct{ before, doubtful, due bool }{{false, false, false}, {true, true, false}, {true, false, true}, {false, true, false}} {
		l := newLAN()
		l.postpone(a, announce.Refusal{}, now.Add(time.Second), c.before)
		take := announce.Take{Address: a, Doubtful: c.doubtful}
		if due := l.isDue(take, now); due != c.due {
			t.Errorf("%+v: due %v", c, due)
		}
		if !l.isDue(take, now.Add(time.Second)) {
			t.Errorf("%+v: not due when the time has come", c)
		}
	}
}

// TestSlow: one that only listens and does not answer may be slow.
func TestSlow(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	for _, answered := range []bool{false, true} {
		for liveness, want := range map[Liveness]bool{Silent: false, Listening: !answered, Closed: false} {
			f := &Finding{Inquiry: &Inquiry{Takes: map[netip.Addr]announce.Take{a: {From: "n2"}}}, Liveness: map[string]Liveness{"n2": liveness}}
			if answered {
				f.Found = map[netip.Addr]Found{a: {MAC: ownerMAC}}
			}
			if f.Slow() != want {
				t.Errorf("answered %v, speaker %v: slow %v", answered, liveness, f.Slow())
			}
		}
	}
}

// TestStatusSaysWhoseItIs: the Node of which it tells, by UID, or that there is none.
func TestStatusSaysWhoseItIs(t *testing.T) {
	m, w := together()
	n := objects.Node(1)
	n.UID = "u1"
	w.Cluster = w.Cluster.With(n)
	if s := m.Step(began(), w).Report.Status; s == nil || s.Node == nil || s.Node.UID != "u1" || len(s.Node.Addresses) != 1 {
		t.Errorf("status %+v", s)
	}
	w.Cluster = w.Cluster.Without(snapshot.Node, snapshot.Key{Name: "n1"})
	if s := m.Step(began().Add(time.Second), w).Report.Status; s == nil || s.Node == nil || s.Node.UID != "" || len(s.Node.Addresses) != 0 {
		t.Errorf("status without a Node %+v", s)
	}
}

// TestWitnesses: a question about a node that is missed is put to it, and to some others.
func TestWitnesses(t *testing.T) {
	for nodes, want := range map[int]int{3: 2, maxWitnesses + 1: maxWitnesses, 2 * maxWitnesses: maxWitnesses + 1} {
		m := alone(t)
		m.world.Cluster = snapshot.Of(objects.Fleet(nodes)...)
		var last string
		for _, p := range m.nodes().peers {
			last = p.Name
		}
		q := &Inquiry{Takes: map[netip.Addr]announce.Take{netip.MustParseAddr(objects.VIP(0)): {From: last}}, Nodes: map[string]netip.Addr{}, Losers: map[string]netip.Addr{}}
		m.nameWitnesses(q)
		if _, asked := q.Nodes[last]; !asked || len(q.Nodes) != want || len(q.Losers) != 1 || q.Losers[last] != q.Nodes[last] {
			t.Errorf("of %d nodes %d are asked, the one that is missed: %v; losers %v", nodes, len(q.Nodes), asked, q.Losers)
		}
	}
}

// TestAFindingIsRecorded: what was decided and why, for the log; what is refused again is
// no news.
func TestAFindingIsRecorded(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	failed := errors.New("no interface to ask on")
	for name, c := range map[string]struct {
		heard  Finding
		cause  announce.Cause
		want   ChangeKind
		again  bool // it is recorded again when it is heard again
		outage time.Duration
	}{
		"taken from who died": {Finding{}, announce.Died, Taken, true, 3 * time.Second},
		"taken at first":      {Finding{}, announce.First, Taken, true, 0},
		"refused":             {Finding{Found: map[netip.Addr]Found{a: {MAC: otherMAC}}}, announce.Died, NotTaken, false, 0},
		"not asked":           {Finding{Err: failed}, announce.Died, Unasked, true, 0},
	} {
		m := alone(t, speaks("n1", ownMAC, "10.0.0.1/24"), speaks("n2", ownerMAC, "10.0.0.2/24"))
		m.world.Members.LastSeen = map[string]time.Time{"n2": m.now.Add(-3 * time.Second)}
		m.compile()
		take := announce.Take{Address: a, From: "n2", Cause: c.cause, Answer: announce.Answer{Epoch: 4}}
		c.heard.Inquiry = &Inquiry{Takes: map[netip.Addr]announce.Take{a: take}}
		m.lan.silent[a] = m.now.Add(-time.Hour)
		for round := range 2 {
			m.out.Changes = nil
			m.judge(take, &c.heard)
			switch changes := m.out.Changes; {
			case round == 1 && !c.again && len(changes) > 0:
				t.Errorf("%s: it is told again: %+v", name, changes)
			case round == 1 && !c.again:
			case len(changes) != 1 || changes[0].Kind != c.want || changes[0].Outage != c.outage || c.want == Unasked && changes[0].Err != failed:
				t.Errorf("%s: changes %+v", name, changes)
			}
		}
		_, deferred := m.lan.deferred[a]
		_, silent := m.lan.silent[a]
		if deferred == (c.want == Taken) || silent != (c.want == Unasked) {
			t.Errorf("%s: deferred %v, known to be silent %v", name, deferred, silent)
		}
	}
}

// TestARememberedClaimIsRenewed: a Service comes to an address on which gossip knows a claim of
// this node, for another Service that is gone. That was made under preferences of which nobody
// knows, so the node says so, and a node that is preferred now may take the address.
func TestARememberedClaimIsRenewed(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	edge := &v1alpha1.L2Advertisement{}
	edge.Name = "edge"
	edge.Spec.PreferredNodeSelectors = []v1alpha1.PreferredNode{{Weight: 10, Preference: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}}
	gold := objects.Node(2)
	gold.Labels = map[string]string{"tier": "gold"}
	for _, gone := range []bool{true, false} {
		m, w := together(edge, gold, holder("n1", ownMAC, objects.VIP(0), 2))
		all := w.Cluster
		w.Members.Claims[a] = announce.Claim{Epoch: 2, Node: "n1"}
		if gone { // the process knew the address, and it is away for a moment
			m.Step(began(), w)
			w.Cluster = w.Cluster.Without(snapshot.Service, snapshot.Key{Namespace: "default", Name: "s0"}).Without(snapshot.SpeakerStatus, snapshot.Key{Name: "n1"})
			m.Step(began().Add(time.Second), w)
			w.Cluster = all.Without(snapshot.SpeakerStatus, snapshot.Key{Name: "n1"})
		}
		m.Step(began().Add(2*time.Second), w)
		if got := m.plan.L2.Answers[a]; got.Epoch != 2 || (got.Preference == "renewed") != gone {
			t.Errorf("after the Service was gone, %v: it answers %+v", gone, got)
		}
	}
}
