package ownership

import "time"

// How long a fault must last before it is reported. A speaker takes a moment to start, and
// a member that is restarted is back within a minute, while all others miss it.
const (
	startGrace   = 5 * time.Second
	absenceGrace = time.Minute
)

// absences records since when gossip, or a member of it, has been missing.
type absences struct {
	waits  time.Time            // since when gossip does not work; zero: it does
	absent map[string]time.Time // since when each missing member is
}

// note updates it from the state of gossip.
func (l *absences) note(members *Members, now time.Time) {
	switch {
	case members.Waiting == "":
		l.waits = time.Time{}
	case l.waits.IsZero():
		l.waits = now
	}
	absent := make(map[string]time.Time, len(members.Missing))
	for name := range members.Missing {
		absent[name] = now
		if since, known := l.absent[name]; known {
			absent[name] = since
		}
	}
	l.absent = absent
}

// wake is how long until something has been missing for long enough to be reported.
func (l *absences) wake(now time.Time) time.Duration {
	next := never
	await := func(since time.Time, patience time.Duration) {
		if left := patience - now.Sub(since); left > 0 {
			next = min(next, left)
		}
	}
	await(l.waits, startGrace)
	for _, since := range l.absent {
		await(since, absenceGrace)
	}
	return next
}
