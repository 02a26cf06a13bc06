package ownership

import "time"

// NoticePeriod is how long a SpeakerStatus says that this node leaves before the
// other speakers are asked to take its addresses. In this time the proxies hear
// of it, and ask clients that keep their connections to come again.
const NoticePeriod = time.Second

// drainNotice is a reason to hand everything over, once it has been announced.
type drainNotice struct{ said time.Time } // zero: there is none

// say notes the reason. Where no notice is needed, it holds at once.
func (n *drainNotice) say(now time.Time, notify bool) {
	switch {
	case n.isSaid():
	case notify:
		n.said = now
	default:
		n.said = now.Add(-NoticePeriod)
	}
}

func (n *drainNotice) isSaid() bool { return !n.said.IsZero() }

// holds reports whether the others are to know.
func (n *drainNotice) holds(now time.Time) bool {
	return n.isSaid() && now.Sub(n.said) >= NoticePeriod
}

// wake is how long until holds changes by itself.
func (n *drainNotice) wake(now time.Time) time.Duration {
	if !n.isSaid() || n.holds(now) {
		return never
	}
	return n.said.Add(NoticePeriod).Sub(now)
}

// departure are the reasons of this node to hand everything over.
type departure struct {
	stops    drainNotice // its speaker is to end
	drained  drainNotice // the node itself is to go
	deadline time.Time   // when it ends, whoever has taken what
}

// leaves reports whether this node is about to hand over, or does.
func (d *departure) leaves() bool { return d.stops.isSaid() || d.drained.isSaid() }

// isOverdue reports whether this node has waited long enough for successors.
func (d *departure) isOverdue(now time.Time) bool {
	return !d.deadline.IsZero() && !now.Before(d.deadline)
}

// wake is how long until something changes by itself.
func (d *departure) wake(now time.Time) time.Duration {
	next := min(d.stops.wake(now), d.drained.wake(now))
	if !d.deadline.IsZero() {
		next = min(next, d.deadline.Sub(now))
	}
	return next
}

// happen begins to hand over.
func (Leave) happen(m *Machine) {
	if m.departure.stops.isSaid() {
		return
	}
	m.departure.stops.say(m.now, m.needsNotice())
	m.departure.deadline = m.now.Add(NoticePeriod + m.opts.HandOver)
}

// needsNotice reports whether anybody could make use of a notice: this node has
// addresses, and somebody is there to take them.
func (m *Machine) needsNotice() bool {
	return len(m.holdings.claims) > 0 && len(m.world.Members.Alive) > 1
}
