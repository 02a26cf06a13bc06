package ownership

import (
	"testing"
	"time"
)

// A notice that somebody heeds holds after the notice, and begins but once;
// one that nobody heeds holds at once.
func TestADrainIsAnnounced(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var n drainNotice
	if n.holds(now) || n.wake(now) < time.Minute {
		t.Error("nobody gave notice")
	}
	n.say(now, true)
	n.say(now.Add(noticePeriod/2), true)
	n.say(now.Add(noticePeriod/2), false)
	half := now.Add(noticePeriod / 2)
	if n.holds(half) || n.wake(half) != noticePeriod/2 {
		t.Errorf("half way: holds %v, wakes in %v", n.holds(half), n.wake(half))
	}
	if end := now.Add(noticePeriod); !n.holds(end) || n.wake(end) < time.Minute {
		t.Errorf("after the notice: holds %v, wakes in %v", n.holds(end), n.wake(end))
	}
	n = drainNotice{}
	if n.say(now, false); !n.holds(now) {
		t.Error("it waits although nobody heeds it")
	}
}
