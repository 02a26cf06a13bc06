// Package busy keeps every processor of the machine busy, as on a node that is
// starved of CPU, and measures how busy it is. Tests use it to see what goes
// wrong then, and that it was not the machine.
package busy

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Cores keeps every processor busy with two processes until the test ends or
// release is called, which may happen more than once.
//
// The processes ask themselves whether the test still lives, so that one that is
// killed leaves none behind: they would distort whatever is measured next.
// Pdeathsig would tie them to a thread of ours instead.
func Cores(t testing.TB) (release func()) {
	t.Helper()
	var burners []*exec.Cmd
	release = sync.OnceFunc(func() {
		for _, b := range burners {
			_ = b.Process.Kill()
			_ = b.Wait()
		}
	})
	t.Cleanup(release)
	for range 2 * runtime.NumCPU() {
		burner := exec.Command("sh", "-c", `while kill -0 "$PPID"; do :; done`)
		if err := burner.Start(); err != nil {
			t.Fatal(err)
		}
		burners = append(burners, burner)
	}
	return release
}

// Standstill measures, until the test ends, for how long the machine lets wait
// who wants to run; the returned function says for how long so far. Where nobody
// else wants the processors that is next to nothing, and a promise about time
// holds as it is written. Of a machine that is late itself nobody can ask more.
func Standstill(t testing.TB) (soFar func() time.Duration) {
	t.Helper()
	const nap = time.Millisecond
	var late atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-ended })
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			began := time.Now()
			time.Sleep(nap)
			if over := time.Since(began) - 2*nap; over > 0 {
				late.Add(int64(over))
			}
		}
	}()
	return func() time.Duration { return time.Duration(late.Load()) }
}

// Ticks are those of all processors since the machine came up.
type Ticks struct{ idle, all int64 }

// Now reads them (proc(5), stat); of a machine that does not say they are none.
func Now() (t Ticks) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		ticks, _ := strconv.ParseInt(field, 10, 64) // of the first, cpu, none
		if t.all += ticks; i == 4 || i == 5 {       // what waits for a disk wants no processor
			t.idle += ticks
		}
	}
	return t
}

// Idle is which share of the processors' time since before nobody wanted, from 0 to 1; of a
// machine that does not say, all of it.
func (t Ticks) Idle(before Ticks) float64 {
	if t.all <= before.all {
		return 1
	}
	return float64(t.idle-before.idle) / float64(t.all-before.all)
}

// Growth fails the test unless many cost less than that many times what few
// do, once in five: a machine that is busy elsewhere is so for a moment.
func Growth(t testing.TB, cost func(n int) time.Duration, few, many int, times time.Duration) {
	t.Helper()
	var less, more time.Duration
	for range 5 {
		if less, more = cost(few), cost(many); more < times*less {
			return
		}
	}
	t.Errorf("%d cost %v and %d cost %v, which is not less than %d times as much", few, less, many, more, times)
}
