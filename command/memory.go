package command

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// largeHeap is from where on a process saves memory: what it holds is then mostly
	// the objects and routes of a large cluster, which stay.
	largeHeap = 128 << 20
	// percentOfLarge is how much such a heap may grow before it is collected; Go's own
	// is 100. Requests leave no garbage, so that this costs little.
	percentOfLarge = 50
	// settleAfter is how long a process that has become ready goes on making what it
	// will hold: statuses are written, and come back.
	settleAfter = 5 * time.Second
	readyEvery  = 100 * time.Millisecond
)

// settle returns a task that waits until ready returns nil, and for a while after that,
// and then gives the memory back that the start needed, if that was much. Whoever sets
// GOGC has decided otherwise.
func settle(ready func() error, after time.Duration) task {
	return running(func(ctx context.Context) error {
		next := time.NewTimer(readyEvery)
		defer next.Stop()
		for isReady := false; !isReady; {
			select {
			case <-ctx.Done():
				return nil
			case <-next.C:
			}
			next.Reset(readyEvery)
			isReady = ready() == nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(after):
		}
		if os.Getenv("GOGC") == "" && liveHeap() >= largeHeap {
			debug.SetGCPercent(percentOfLarge)
			debug.FreeOSMemory()
		}
		return nil
	})
}

// liveHeap is how many bytes the last collection found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
