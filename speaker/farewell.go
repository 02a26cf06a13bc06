package speaker

import "time"

// notice is how long a SpeakerStatus says that this node leaves before the
// other speakers are asked to take its addresses. In this time the proxies hear
// of it, and ask clients that keep their connections to come again.
const notice = time.Second

// farewell is a reason to hand everything over, once it has been announced.
type farewell struct{ said time.Time } // zero: there is none

// say notes the reason. Where no notice is needed, it holds at once.
func (f *farewell) say(now time.Time, notify bool) {
	switch {
	case !f.said.IsZero():
	case notify:
		f.said = now
	default:
		f.said = now.Add(-notice)
	}
}

// holds reports whether the others are to know.
func (f *farewell) holds(now time.Time) bool {
	return !f.said.IsZero() && now.Sub(f.said) >= notice
}

// wake is how long until holds changes by itself.
func (f *farewell) wake(now time.Time) time.Duration {
	if f.said.IsZero() || f.holds(now) {
		return time.Hour
	}
	return f.said.Add(notice).Sub(now)
}

// needsNotice reports whether anybody could make use of a notice: this node has
// addresses, and somebody is there to take them.
func (m *mind) needsNotice() bool {
	return len(m.mine) > 0 && m.members != nil && len(m.members.Alive) > 1
}

// leaves reports whether this node is about to hand over, or does.
func (m *mind) leaves() bool { return !m.stops.said.IsZero() || !m.drained.said.IsZero() }
