package speaker

import (
	"testing"
	"time"
)

// A farewell that somebody heeds holds after the notice, and begins but once;
// one that nobody heeds holds at once.
func TestAFarewellIsAnnounced(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var f farewell
	if f.holds(now) || f.wake(now) < time.Minute {
		t.Error("nobody said farewell")
	}
	f.say(now, true)
	f.say(now.Add(notice/2), true)
	f.say(now.Add(notice/2), false)
	half := now.Add(notice / 2)
	if f.holds(half) || f.wake(half) != notice/2 {
		t.Errorf("half way: holds %v, wakes in %v", f.holds(half), f.wake(half))
	}
	if end := now.Add(notice); !f.holds(end) || f.wake(end) < time.Minute {
		t.Errorf("after the notice: holds %v, wakes in %v", f.holds(end), f.wake(end))
	}
	f = farewell{}
	if f.say(now, false); !f.holds(now) {
		t.Error("it waits although nobody heeds it")
	}
}
