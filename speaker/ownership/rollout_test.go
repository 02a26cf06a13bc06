package ownership

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// podsOn are endpoints of the Service at VIPLocal, by node: starting, ready, ending, which
// still serve, or ended.
func podsOn(states map[string]string) *discoveryv1.EndpointSlice {
	s := objects.Endpoints(slices.Sorted(maps.Keys(states))...)
	for i := range s.Endpoints {
		state := states[*s.Endpoints[i].NodeName]
		ready, serving, terminating := state == "ready", serves(state), state == "ending" || state == "ended"
		s.Endpoints[i].Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
	}
	return s
}

func serves(state string) bool { return state == "ready" || state == "ending" }

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
		m, w := together(holder("n1", ownMAC, objects.VIPLocal, 2), podsOn(map[string]string{"n1": "ready", "n2": "starting"}))
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
	f.put(podsOn(map[string]string{owner: "ready", other: "starting"}))
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

// The speaker beside the only ready pod is replaced while the pod of the other node
// terminates. Whichever happens first, and whoever has the address: the pod that terminates
// serves until that speaker is back, and no longer.
func TestAPodThatEndsServesWhileTheOtherHasNoSpeaker(t *testing.T) {
	for name, tt := range map[string]struct {
		holds string // whose node has the address at first
		runs  func(f *sim, n *simNode, podEnds func())
	}{
		"the pod ends first": {"ready", func(f *sim, n *simNode, podEnds func()) {
			podEnds()
			f.run(time.Second)
			f.replaced(n)
		}},
		"the speaker stops first": {"ending", func(f *sim, n *simNode, podEnds func()) {
			f.replaced(n)
			podEnds()
		}},
		"the speaker is dead": {"ending", func(f *sim, n *simNode, podEnds func()) {
			n.kill()
			f.run(2 * time.Second)
			podEnds()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				f := newSim(t, 3, seed)
				f.startAll()
				ready, ending := f.who(objects.VIPLocal), "n2"
				if ready == ending {
					ending = "n1"
				}
				if tt.holds == "ending" {
					ready, ending = ending, ready
				}
				tt.runs(f, f.node(ready), func() { f.put(podsOn(map[string]string{ready: "ready", ending: "ending"})) })
				f.answered("the node of the pod that ends has it", time.Second, func() bool { return f.who(objects.VIPLocal) == ending })
				for back := f.now.Add(5 * time.Second); f.now.Before(back); f.run(10 * time.Millisecond) {
					if now := f.who(objects.VIPLocal); now != ending {
						f.fatalf("%q answers for %s while %s has no speaker", now, objects.VIPLocal, ready)
					}
				}
				f.node(ready).start()
				f.answered("the node of the ready pod has it", 3*time.Second, func() bool { return f.who(objects.VIPLocal) == ready })
			}
		})
	}
}

// replaced lets the speaker of n stop, while VIPLocal is answered for.
func (s *sim) replaced(n *simNode) {
	s.t.Helper()
	n.terminate()
	s.answered("its speaker ends", 6*time.Second, func() bool { return n.speaker == nil })
}

// answered lets time pass until something holds, and fails if VIPLocal is silent meanwhile.
func (s *sim) answered(what string, bound time.Duration, holds func() bool) {
	s.t.Helper()
	s.until(what, bound, func() bool {
		if s.who(objects.VIPLocal) == "" {
			s.fatalf("nobody answers for %s until %s", objects.VIPLocal, what)
		}
		return holds()
	})
}

// Pods and speakers are replaced at the same time, each one node after the other. While some
// node has a pod that serves and a speaker that stays, the address is silent for no longer
// than the next owner takes to meet the others, if it has just started.
func TestRolloutsOfPodsAndSpeakersAtOnce(t *testing.T) {
	const atMost = joinDelay + 100*time.Millisecond
	for seed := range uint64(30) {
		r := &rollout{sim: newSim(t, 3, seed), left: 2, able: map[string]time.Time{}}
		r.pods = map[string]string{"n1": "ready", "n2": "ready"}
		if seed%2 == 0 {
			r.pods["n3"] = "ready"
		}
		r.put(podsOn(r.pods))
		r.startAll()
		r.in(r.within(5*time.Second), func() { r.replacePods(slices.Sorted(maps.Keys(r.pods))) })
		r.in(r.within(5*time.Second), func() { r.replaceSpeakers(r.nodes) })
		for silent := r.now; r.left > 0; r.run(10 * time.Millisecond) {
			who := r.who(objects.VIPLocal)
			if !r.canServe() || serves(r.pods[who]) {
				silent = r.now
			}
			if r.now.Sub(silent) > atMost {
				r.fatalf("seed %d: %q answers for %s; the pods are %v", seed, who, objects.VIPLocal, r.pods)
			}
		}
	}
}

// rollout is a fleet whose pods and speakers are replaced.
type rollout struct {
	*sim
	pods map[string]string // see podsOn
	able map[string]time.Time
	left int // rollouts that are not over
}

// within is at most d.
func (r *rollout) within(d time.Duration) time.Duration {
	return time.Duration(r.chance.Int64N(int64(d)))
}

// canServe reports whether a node has had a pod that serves and a speaker that stays for as
// long as the others take to learn of either.
func (r *rollout) canServe() (can bool) {
	for _, n := range r.nodes {
		if sp := n.speaker; sp == nil || sp.leaving || !sp.gossip.settled || !serves(r.pods[n.name]) {
			delete(r.able, n.name)
		} else if r.able[n.name].IsZero() {
			r.able[n.name] = r.now
		}
		since, able := r.able[n.name]
		can = can || able && r.now.Sub(since) > joinDelay
	}
	return can
}

func (r *rollout) replacePods(nodes []string) {
	if len(nodes) == 0 {
		r.left--
		return
	}
	at := time.Duration(0)
	becomes := func(state string, after time.Duration) {
		at += after
		r.in(at, func() {
			r.note("the pod of %s is %s", nodes[0], state)
			r.pods[nodes[0]] = state
			r.put(podsOn(r.pods))
		})
	}
	becomes("ending", 0)
	becomes("ended", 500*time.Millisecond+r.within(8*time.Second))
	becomes("starting", r.within(500*time.Millisecond))
	becomes("ready", r.within(3*time.Second))
	r.in(at+r.within(300*time.Millisecond), func() { r.replacePods(nodes[1:]) })
}

func (r *rollout) replaceSpeakers(nodes []*simNode) {
	if len(nodes) == 0 {
		r.left--
		return
	}
	nodes[0].terminate()
	var await func()
	await = func() {
		if nodes[0].speaker != nil {
			r.in(20*time.Millisecond, await)
			return
		}
		start := r.within(3 * time.Second)
		r.in(start, nodes[0].start)
		r.in(start+time.Second+r.within(2*time.Second), func() { r.replaceSpeakers(nodes[1:]) })
	}
	await()
}
