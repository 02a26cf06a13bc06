package ownership

import "time"

// What passes by itself is not told: starting takes a moment, and a member that
// is restarted or updated is back in a minute, while all the others miss it.
const (
	starting = 5 * time.Second
	absence  = time.Minute
)

// lacks are what is missing, and since when.
type lacks struct {
	waits  time.Time            // since when the members do not work; zero: they do
	absent map[string]time.Time // since when members are missing
}

// note notes what is missing.
func (l *lacks) note(members *Members, now time.Time) {
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

// wake is how long until something has been missing for long enough.
func (l *lacks) wake(now time.Time) time.Duration {
	next := never
	await := func(since time.Time, patience time.Duration) {
		if left := patience - now.Sub(since); left > 0 {
			next = min(next, left)
		}
	}
	await(l.waits, starting)
	for _, since := range l.absent {
		await(since, absence)
	}
	return next
}
