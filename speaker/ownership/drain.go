package ownership

import (
	"time"

	"quayside.io/speaker/announce"
)

// noticePeriod is how long the SpeakerStatus says that this node is leaving before the
// other speakers may take its addresses. In this time the proxies learn of it and ask
// clients with kept connections to reconnect.
const noticePeriod = time.Second

// drainNotice is a reason to hand all addresses over, once it has been announced for
// noticePeriod.
type drainNotice struct{ said time.Time } // zero: there is none

// say starts the notice. If notify is false, it holds at once.
func (n *drainNotice) say(now time.Time, notify bool) {
	switch {
	case n.isSaid():
	case notify:
		n.said = now
	default:
		n.said = now.Add(-noticePeriod)
	}
}

func (n *drainNotice) isSaid() bool { return !n.said.IsZero() }

// holds reports whether the noticePeriod is over, so that the other speakers are told.
func (n *drainNotice) holds(now time.Time) bool {
	return n.isSaid() && now.Sub(n.said) >= noticePeriod
}

// wake is how long until holds changes.
func (n *drainNotice) wake(now time.Time) time.Duration {
	if !n.isSaid() || n.holds(now) {
		return never
	}
	return n.said.Add(noticePeriod).Sub(now)
}

// departure is why this node hands all its addresses over.
type departure struct {
	stops    drainNotice // its speaker is to stop
	drained  drainNotice // the node itself is being drained
	deadline time.Time   // when the speaker stops, even if addresses are left
	// prolonged says that the deadline is later, since an address awaits an endpoint.
	prolonged bool
}

// leaves reports whether this node hands over or is about to.
func (d *departure) leaves() bool { return d.stops.isSaid() || d.drained.isSaid() }

// isOverdue reports whether the deadline has passed.
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

// apply starts the hand-over.
func (Leave) apply(m *Machine) {
	if m.departure.stops.isSaid() {
		return
	}
	m.departure.stops.say(m.now, m.needsNotice())
	m.departure.deadline = m.now.Add(noticePeriod + m.opts.HandOver)
}

// prolong puts the deadline off, once, if an address awaits an endpoint that is starting:
// the node that gets it leaves the address here for a while yet, see announce.Settling.
func (m *Machine) prolong() {
	d := &m.departure
	if !d.stops.isSaid() || d.prolonged {
		return
	}
	for _, answer := range m.plan.L2.Answers {
		if answer.Awaits {
			d.deadline, d.prolonged = d.deadline.Add(announce.Settling), true
			return
		}
	}
}

// needsNotice reports whether a notice is of use: this node has addresses, and there is
// another node to take them.
func (m *Machine) needsNotice() bool {
	return len(m.holdings.claims) > 0 && len(m.world.Members.Alive) > 1
}
