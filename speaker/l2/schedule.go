package l2

import (
	"container/heap"
	"net/netip"
	"time"
)

// burst is when an address that arrived is announced, counted from its
// arrival: at once, then with growing gaps, since frames get lost most while a
// network rearranges itself and hosts may miss what comes while they restart.
func burst() []time.Duration {
	return []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond, 1100 * time.Millisecond, 2500 * time.Millisecond}
}

// place is an address on an interface.
type place struct {
	address netip.Addr
	on      responderKey
}

// schedule says what is to be announced when: a burst, then a beat, so that no
// switch or router ever forgets. It knows no clock.
type schedule struct {
	beat  time.Duration
	queue entries
	byKey map[place]*entry
}

type entry struct {
	place
	start time.Time
	step  int // into burst; beyond it beats
	due   time.Time
	index int
}

func newSchedule(beat time.Duration) *schedule {
	return &schedule{beat: beat, byKey: map[place]*entry{}}
}

// arm begins the burst of a place, again if it was under way.
func (s *schedule) arm(p place, now time.Time) {
	e, ok := s.byKey[p]
	if !ok {
		e = &entry{place: p, due: now, start: now}
		s.byKey[p] = e
		heap.Push(&s.queue, e)
		return
	}
	e.start, e.step, e.due = now, 0, now
	heap.Fix(&s.queue, e.index)
}

func (s *schedule) remove(p place) {
	if e, ok := s.byKey[p]; ok {
		heap.Remove(&s.queue, e.index)
		delete(s.byKey, p)
	}
}

// next returns a place that is due and books its next turn.
func (s *schedule) next(now time.Time) (place, bool) {
	if len(s.queue) == 0 || s.queue[0].due.After(now) {
		return place{}, false
	}
	e := s.queue[0]
	e.step++
	if times := burst(); e.step < len(times) {
		e.due = e.start.Add(times[e.step])
	} else {
		e.due = now.Add(s.beat)
	}
	heap.Fix(&s.queue, 0)
	return e.place, true
}

// wait is how long until something is due; false: nothing ever is.
func (s *schedule) wait(now time.Time) (time.Duration, bool) {
	if len(s.queue) == 0 {
		return 0, false
	}
	return max(0, s.queue[0].due.Sub(now)), true
}

// entries is a heap by due time.
type entries []*entry

func (e entries) Len() int           { return len(e) }
func (e entries) Less(i, j int) bool { return e[i].due.Before(e[j].due) }
func (e entries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

// Push and Pop are for package heap.
func (e *entries) Push(x any) {
	n := x.(*entry)
	n.index = len(*e)
	*e = append(*e, n)
}

// Pop removes the last element.
func (e *entries) Pop() any {
	old := *e
	n := old[len(old)-1]
	*e = old[:len(old)-1]
	return n
}
