package ownership

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fault is something that may happen to a node, and how it ends.
type fault struct {
	name     string
	do, undo func(*simNode)
}

// gossipOnly are the faults that leave every address where it is.
func gossipOnly() []fault {
	cut := func(cut bool) func(*simNode) {
		return func(n *simNode) { n.cable(fmt.Sprintf("gossip cut: %v", cut), func() { n.gossipCut = cut }) }
	}
	return []fault{{"gossip", cut(true), cut(false)}}
}

// deaths are the faults by which a node stops to answer.
func deaths() []fault {
	cable := func(what string, do func(*simNode)) func(*simNode) {
		return func(n *simNode) { n.cable(what, func() { do(n) }) }
	}
	start := func(n *simNode) {
		if n.speaker == nil {
			n.start()
		}
	}
	return []fault{
		{"silence", cable("is silenced", func(n *simNode) { n.silenced = true }), cable("speaks", func(n *simNode) { n.silenced = false })},
		{"carrier", cable("loses its carrier", func(n *simNode) { n.carrier = false }), cable("has a carrier", func(n *simNode) { n.carrier = true })},
		{"split", cable("is moved away", func(n *simNode) { n.segment = 1 }), cable("is moved back", func(n *simNode) { n.segment = 0 })},
		{"deaf", func(n *simNode) { n.lanCable(true) }, func(n *simNode) { n.lanCable(false) }},
		{"kill", (*simNode).kill, start},
		{"end", (*simNode).terminate, start},
		{"pause", (*simNode).pause, (*simNode).resume},
	}
}

// words are what a node may say of itself.
func words() []fault {
	behind := func(is bool) func(*simNode) {
		return func(n *simNode) {
			n.behind = is
			n.happen()
		}
	}
	return []fault{
		{"drain", func(n *simNode) { n.taint(n, true) }, func(n *simNode) { n.taint(n, false) }},
		{"kube-proxy", behind(true), behind(false)},
		{"lag", func(n *simNode) { n.lag = 3 * time.Second }, func(n *simNode) { n.lag = 0 }},
	}
}

// fleetOf draws a fleet that has come to rest.
func fleetOf(t *rapid.T) *sim {
	f := newSim(t, rapid.IntRange(2, 4).Draw(t, "nodes"), rapid.Uint64().Draw(t, "seed"))
	f.startAll()
	return f
}

// suffer lets faults begin and end at nodes in any order.
func (s *sim) suffer(t *rapid.T, faults []fault, during func()) {
	active := map[string]func(){}
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		n := s.nodes[rapid.IntRange(0, len(s.nodes)-1).Draw(t, "node")]
		x := faults[rapid.IntRange(0, len(faults)-1).Draw(t, "fault")]
		key := n.name + " " + x.name
		if undo := active[key]; undo != nil {
			undo()
			delete(active, key)
		} else {
			x.do(n)
			active[key] = func() { x.undo(n) }
		}
		s.watch.disturb()
		for range rapid.IntRange(1, 5).Draw(t, "half seconds") {
			s.run(500 * time.Millisecond)
			during()
		}
	}
	for _, n := range s.nodes { // in this order: chance is rapid's
		for _, x := range faults {
			if undo := active[n.name+" "+x.name]; undo != nil {
				undo()
			}
		}
	}
	s.watch.disturb()
}

// heal starts what does not run, and waits.
func (s *sim) heal() {
	s.run(5 * time.Second) // whoever ends has ended
	for _, n := range s.nodes {
		if n.speaker == nil {
			n.start()
		}
	}
	s.quiet()
}

// Whatever happens, nothing is answered for by two, nor by nobody, for longer than
// the watcher's bounds after it happened; and when all is well again, one answers for each address
// and nothing moves any more.
func TestFleetsSurviveAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleetOf(t)
		faults := append(append(deaths(), words()...), gossipOnly()...)
		f.suffer(t, faults, func() {})
		f.heal()
		f.still(5 * time.Second)
	})
}

// Nothing moves because only gossip broke, however often.
func TestBrokenGossipMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleetOf(t)
		before := f.owners()
		f.suffer(t, gossipOnly(), func() {
			if after := f.owners(); !maps.Equal(before, after) {
				f.fatalf("owners moved from %v to %v", before, after)
			}
		})
		f.quiet()
		f.still(time.Second)
	})
}

// A node that returns takes nothing back, however it went, and if it was cut off, does
// not answer for a moment for what others have.
func TestWhoReturnsTakesNothingBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleetOf(t)
		n := f.nodes[rapid.IntRange(0, len(f.nodes)-1).Draw(t, "node")]
		x := deaths()[rapid.IntRange(0, len(deaths())-1).Draw(t, "fault")]
		x.do(n)
		f.until("others answer for everything", silentAtMost+5*time.Second, func() bool {
			return f.isWhole() && count(f.owners())[n.name] == 0
		})
		f.run(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
		held := f.owners()
		isCut := slices.Contains([]string{"silence", "carrier", "split"}, x.name)
		if isCut {
			f.run(500 * time.Millisecond) // it has asked twice whether it hears anybody
			f.watch.reset()
		}
		x.undo(n)
		f.heal()
		if both := f.watch.longest.both; isCut && both > 0 {
			f.fatalf("%s returned, and two answered for %v", n.name, both)
		}
		if after := f.owners(); !maps.Equal(held, after) {
			f.fatalf("%s returned, and owners moved from %v to %v", n.name, held, after)
		}
	})
}
