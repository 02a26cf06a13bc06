package e2e

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/test/busy"
)

// turns say how many tests of different lanes run side by side: as many as the machine
// keeps up with. One more than that takes longer than one after the other, and loses the
// packets that others count.
var turns struct {
	next    sync.Mutex // of who begins
	running atomic.Int32
	paired  sync.Map       // by name
	left    sync.WaitGroup // of these
}

// inPairs lets t run beside one test of another lane. It is for those that count
// what fails while something moves: two of them leave the processors time. Whatever
// measures time or makes the machine busy does without, and runs alone, before all
// of these.
func inPairs(t *testing.T) {
	t.Helper()
	turns.paired.Store(t.Name(), nil)
	turns.left.Add(1)
	t.Cleanup(turns.left.Done)
	t.Parallel()
}

// beside lets t run beside tests of other lanes, after those in pairs. It is for
// those that wait for facts, and would with less of a processor, too.
func beside(t *testing.T) {
	t.Helper()
	t.Parallel()
	turns.left.Wait()
}

// takeTurn waits until there is time for t, which has its lane, beside those that run.
func takeTurn(t *testing.T) {
	t.Helper()
	anyway, most, idle, measured := 2, len(shared), 0.15, 300*time.Millisecond // most of what they do is waiting
	whole, _, _ := strings.Cut(t.Name(), "/")
	if _, paired := turns.paired.Load(whole); paired {
		anyway, most, idle, measured = 1, 2, 0.3, time.Second
	}
	const patience = 2 * time.Minute // one that runs may have parts that wait here
	turns.next.Lock()
	defer turns.next.Unlock()
	for began := time.Now(); time.Since(began) < patience; {
		before := busy.Now()
		if int(turns.running.Load()) < anyway {
			break
		}
		time.Sleep(measured)
		if int(turns.running.Load()) < most && busy.Now().Idle(before) > idle {
			break
		}
	}
	turns.running.Add(1)
	t.Cleanup(func() { turns.running.Add(-1) })
}
