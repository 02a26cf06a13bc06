package speaker

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// Work gets all processors at once, and rest gives all but one back after a while without.
func TestProcessors(t *testing.T) {
	all := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(all)
	want := func(n int, when string) {
		t.Helper()
		if now := runtime.GOMAXPROCS(0); now != n {
			t.Errorf("%s: %d processors, want %d", when, now, n)
		}
	}
	p := &processors{all: 2}
	p.look(true)
	want(1, "at rest")
	p.work()
	want(2, "at work")
	p.look(true)
	want(2, "shortly after")
	if pause := p.look(true); pause != restPause {
		t.Errorf("at rest, it is to look again in %v", pause)
	}
	want(1, "later")
	if pause := p.look(false); pause != workPause {
		t.Errorf("at work, it is to look again in %v", pause)
	}
	want(2, "where something else takes processor time")
	p.look(true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }()
	cancel()
	<-done
	want(2, "at the end")
	(&processors{}).look(true)
	want(2, "where they are to be left as they are")
	if timeSpent() <= 0 || timeSpent() > time.Hour {
		t.Errorf("this process has run for %v", timeSpent())
	}
}
