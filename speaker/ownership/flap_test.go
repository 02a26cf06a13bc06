package ownership

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"quayside.io/test/objects"
)

// flapAtMost is how long an address may go round among nodes whose watches lag,
// from when the last of them has seen what it alone sees.
const flapAtMost = time.Second

// flap lets every node see the endpoint of VIPLocal where it is itself, one after
// the other within a while, and says how long the address goes round after that.
func (s *sim) flap(within func() time.Duration) time.Duration {
	s.t.Helper()
	began := s.now
	for _, n := range s.nodes {
		delay := within()
		began = later(began, s.now.Add(delay))
		s.in(delay, func() {
			n.cluster = n.cluster.With(objects.Endpoints(n.name))
			n.happen()
		})
	}
	moved, holder := began, s.who(objects.VIPLocal)
	for end := began.Add(5 * time.Second); s.now.Before(end); s.run(5 * time.Millisecond) {
		now := s.who(objects.VIPLocal)
		if holder != now {
			holder, moved = now, later(moved, s.now)
		}
	}
	if holder == "" {
		s.fatalf("nobody answers, though each could")
	}
	return moved.Sub(began)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Watches that lag in any order make an address go round for a moment, however many
// they are.
func TestFlappingEndsSoon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newSim(t, rapid.IntRange(2, 7).Draw(t, "nodes"), rapid.Uint64().Draw(t, "seed"))
		f.startAll()
		took := f.flap(func() time.Duration { return time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond })
		if took > flapAtMost {
			f.fatalf("the address went round for %v", took)
		}
	})
}

// Endpoints that go to and fro, as a drain and its end make them, are no flapping: where
// all see the same, sooner or later, the address follows each time as quickly as the
// first.
func TestWhatMovesToAndFroIsFollowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newSim(t, rapid.IntRange(2, 5).Draw(t, "nodes"), rapid.Uint64().Draw(t, "seed"))
		f.startAll()
		for i := range 6 {
			node := f.nodes[i%2].name
			f.put(objects.Endpoints(node))
			f.until("the address is at "+node, 2*time.Second, func() bool { return f.who(objects.VIPLocal) == node })
			f.run(watchDelay + time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms"))*time.Millisecond)
		}
	})
}

// movesWithin is how long an address may stay with a node that may not serve it, from when
// the last watch shows what is true.
const movesWithin = time.Second

// While watches lag, nodes take an address from each other, and who loses it doubts its own
// watch. Once all see the same, the address goes where it belongs without delay. It is answered
// for all the time.
func TestFlappingEndsWhenWatchesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newSim(t, rapid.IntRange(2, 7).Draw(t, "nodes"), rapid.Uint64().Draw(t, "seed"))
		f.startAll()
		ms := func(most int, what string) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * time.Millisecond
		}
		f.flap(func() time.Duration { return ms(2000, "sees it after") })
		f.run(ms(8000, "lags for"))
		truth, longest := f.nodes[rapid.IntRange(0, len(f.nodes)-1).Draw(t, "truth")], time.Duration(0)
		for _, n := range f.nodes {
			n.lag = ms(3000, "lag")
			longest = max(longest, n.lag)
		}
		mark := len(f.log)
		f.put(objects.Endpoints(truth.name))
		agree := f.now.Add(watchDelay + longest)
		f.until("the address is where its endpoint is", longest+watchDelay+movesWithin, func() bool {
			if f.who(objects.VIPLocal) == "" {
				f.fatalf("nobody answers while the address moves")
			}
			return f.who(objects.VIPLocal) == truth.name
		})
		f.run(max(0, agree.Sub(f.now)) + movesWithin)
		moves := f.logged(mark, "takes "+objects.VIPLocal+" ")
		f.still(10 * time.Second)
		if late := f.logged(mark, "takes "+objects.VIPLocal+" ") - moves; late > 0 || moves > len(f.nodes) {
			f.fatalf("the address moved %d times, and %d times after %v with one truth", moves, late, movesWithin)
		}
	})
}
