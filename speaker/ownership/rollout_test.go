package ownership

import (
	"net/netip"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// startsOn are endpoints of the Service at VIPLocal: a ready one, and one that is not yet.
func startsOn(ready, starting string) *discoveryv1.EndpointSlice {
	s, no := objects.Endpoints(ready, starting), false
	s.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &no, Terminating: &no}
	return s
}

// The speaker of the only node with a ready endpoint is to leave while the endpoint of
// another node starts. It waits for that: until the other has taken the address, or the
// endpoint is given up, or for as long as it waits for anybody.
func TestWhoLeavesWaitsForWhatStarts(t *testing.T) {
	a := netip.MustParseAddr(objects.VIPLocal)
	for name, tt := range map[string]struct {
		then  func(w *World)
		after time.Duration
		want  End
	}{
		"it becomes ready, and nobody has the address yet": {func(w *World) { w.Cluster = w.Cluster.With(objects.Endpoints("n1", "n2")) }, time.Second, Stays},
		"its node has the address": {func(w *World) {
			w.Cluster = w.Cluster.With(objects.Endpoints("n1", "n2"))
			w.Members = w.Members.copied()
			w.Members.Claims[a] = announce.Claim{Epoch: 3, Node: "n2"}
		}, time.Second, Done},
		"it is given up":       {func(w *World) { w.Cluster = w.Cluster.With(objects.Endpoints("n1")) }, time.Second, Done},
		"it is late":           {func(*World) {}, 3 * time.Second, Stays},
		"and the time is over": {func(*World) {}, 3*time.Second + announce.Settling, Overdue},
	} {
		m, w := together(holder("n1", ownMAC, objects.VIPLocal, 2), startsOn("n1", "n2"))
		now := began()
		m.Step(now, w)
		if out := m.Step(now, w, Leave{}); out.End != Stays {
			t.Fatalf("%s: it gives no notice", name)
		}
		now = now.Add(noticePeriod)
		out := m.Step(now, w)
		if _, answers := out.LAN.Addresses[a]; !answers || out.End != Stays || out.Plan.L2.Answers[a].HandOver != "" {
			t.Fatalf("%s: it answers for %v, and ends: %v", name, out.LAN.Addresses, out.End)
		}
		if tt.then(&w); m.StillValid(w.Cluster) {
			t.Errorf("%s: it does not look at it", name)
		}
		if out = m.Step(now.Add(tt.after), w); out.End != tt.want {
			t.Errorf("%s: end %v, want %v; it answers for %v", name, out.End, tt.want, out.Plan.L2.Answers)
		}
	}
}

// A fleet is rolled out with the pods that it announces: a speaker is replaced while the
// only other pod has just begun. Nobody misses an answer.
func TestSpeakersAndTheirPodsAreReplacedTogether(t *testing.T) {
	f := newSim(t, 3, 5)
	f.startAll()
	owner := f.who(objects.VIPLocal)
	other := map[string]string{"n1": "n2", "n2": "n1"}[owner]
	f.put(startsOn(owner, other))
	f.run(time.Second)
	n := f.node(owner)
	n.terminate()
	f.in(noticePeriod+2500*time.Millisecond, func() { f.put(objects.Endpoints(owner, other)) })
	f.until("it ends", 6*time.Second, func() bool {
		if f.who(objects.VIPLocal) == "" {
			f.fatalf("nobody answers for %s, which %s had", objects.VIPLocal, owner)
		}
		return n.speaker == nil
	})
	if now := f.who(objects.VIPLocal); now != other {
		t.Errorf("%s answers, want %s", now, other)
	}
}
