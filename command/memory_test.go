package command

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
)

// A process that has become ready saves memory if it holds much, unless it was told how.
func TestALargeHeapIsCollectedSooner(t *testing.T) {
	for _, c := range []struct {
		name string
		held int
		gogc string
		want int
	}{
		{"large", largeHeap, "", percentOfLarge},
		{"large, and GOGC is set", largeHeap, "100", 100},
		{"small", 1 << 20, "", 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOGC", c.gogc)
			before := debug.SetGCPercent(100)
			held := make([]byte, c.held)
			runtime.GC()
			var asked atomic.Int32
			ready := func() error {
				if asked.Add(1) < 3 {
					return errors.New("not yet")
				}
				return nil
			}
			if err := settle(ready, 0).Run(t.Context()); err != nil || asked.Load() < 3 {
				t.Errorf("error %v after %d questions", err, asked.Load())
			}
			runtime.KeepAlive(held)
			if got := debug.SetGCPercent(before); got != c.want {
				t.Errorf("a heap may grow by %d %%, want %d", got, c.want)
			}
		})
	}
}
