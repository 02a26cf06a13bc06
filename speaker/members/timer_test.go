package members

import (
	"testing"
	"time"
)

// newTestTimer is closed when the test ends.
func newTestTimer(t testing.TB) *timer {
	t.Helper()
	timer, err := newTimer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(timer.close)
	return timer
}

// A timer expires at the time that it was last set to, and only once; closing it ends the
// wait.
func TestTimer(t *testing.T) {
	timer, expired, began := newTestTimer(t), make(chan time.Duration), time.Now()
	go func() {
		for timer.wait() {
			expired <- time.Since(began)
		}
		close(expired)
	}()
	timer.set(began.Add(time.Hour))
	timer.set(began.Add(30 * time.Millisecond))
	if at := <-expired; at < 30*time.Millisecond {
		t.Errorf("expired after %v, want 30 ms", at)
	}
	timer.set(began) // in the past: at once
	<-expired
	timer.set(time.Now().Add(20 * time.Millisecond))
	timer.set(time.Time{})
	select {
	case at := <-expired:
		t.Errorf("expired after %v, but was unset", at)
	case <-time.After(60 * time.Millisecond):
	}
	timer.close()
	if _, again := <-expired; again {
		t.Error("expired when it was closed")
	}
	timer.set(time.Now()) // does nothing
}

func TestTimerAllocatesNothing(t *testing.T) {
	timer, at := newTestTimer(t), time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() { timer.set(at) }); n > 0 {
		t.Errorf("setting a timer allocates %v times", n)
	}
}
