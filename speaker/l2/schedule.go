package l2

import (
	"net/netip"
	"time"

	"quayside.io/speaker/due"
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
	queue due.Queue[turn]
	byKey map[place]*due.Entry[turn]
}

// turn is how far the announcements of a place have come.
type turn struct {
	place
	start time.Time
	step  int // into burst; beyond it beats
}

func newSchedule(beat time.Duration) *schedule {
	return &schedule{beat: beat, byKey: map[place]*due.Entry[turn]{}}
}

// arm begins the burst of a place, again if it was under way.
func (s *schedule) arm(p place, now time.Time) {
	e, ok := s.byKey[p]
	if !ok {
		e = &due.Entry[turn]{}
		s.byKey[p] = e
	}
	e.Value = turn{place: p, start: now}
	s.queue.Set(e, now)
}

func (s *schedule) remove(p place) {
	if e, ok := s.byKey[p]; ok {
		s.queue.Remove(e)
		delete(s.byKey, p)
	}
}

// next returns a place that is due and sets its next turn.
func (s *schedule) next(now time.Time) (place, bool) {
	e := s.queue.First()
	if e == nil || e.At().After(now) {
		return place{}, false
	}
	at := now.Add(s.beat)
	e.Value.step++
	if times := burst(); e.Value.step < len(times) {
		at = e.Value.start.Add(times[e.Value.step])
	}
	s.queue.Set(e, at)
	return e.Value.place, true
}

// wait is how long until something is due; false: nothing ever is.
func (s *schedule) wait(now time.Time) (time.Duration, bool) {
	e := s.queue.First()
	if e == nil {
		return 0, false
	}
	return max(0, e.At().Sub(now)), true
}
