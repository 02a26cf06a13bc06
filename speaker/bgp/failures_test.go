package bgp

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// TestAFailedPathEndsTheSessionAtOnce counts failures up, and forgets them.
func TestAFailedPathEndsTheSessionAtOnce(t *testing.T) {
	r := newRude(t, func(*Settings, *Options) {})
	want := *r.s.want.Load()
	set := func(failures uint64) {
		session := want.Sessions[0]
		session.Failures = failures
		r.s.Set(&Want{Sessions: []Session{session}})
	}
	c := r.accept()
	r.greet(c, 90)
	for failures := uint64(1); failures <= 2; failures++ {
		set(failures)
		if code, sub, err := last(c); code != 6 || sub != 10 || err != nil {
			t.Fatalf("failure %d ended it with %d/%d, %v; want Cease, BFD Down", failures, code, sub, err)
		}
		r.s.awaitError("r", "BFD")
		c = r.accept()
		r.greet(c, 90)
	}
	for _, nothing := range []uint64{2, 0} { // the same one; whoever counts has begun anew
		set(nothing)
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d failures: the session was ended for nothing: %v", nothing, err)
		}
	}
	set(1)
	if code, sub, err := last(c); code != 6 || sub != 10 || err != nil {
		t.Errorf("the next failure ended it with %d/%d, %v", code, sub, err)
	}
}
