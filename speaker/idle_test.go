package speaker

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

const (
	// idleTime is how long a fleet is watched at rest; restEnv is for who wants to know
	// more exactly.
	idleTime = 3 * time.Second
	restEnv  = "QUAYSIDE_TEST_REST"

	// What follows is about three times what gossip of the default profile takes, and
	// the beats for those who would follow. What turns in circles, or asks when it could
	// be told, takes thousands. How many they are changes little.
	idleWakes  = 400
	idleMemory = 200 << 10
)

// TestIdleSpeakers says what a whole speaker costs that has nothing to do, and fails
// where something wakes it that need not. A busy machine wakes it no more often, and it
// needs no more memory there.
func TestIdleSpeakers(t *testing.T) { idle(t, 3) }

func TestSevenIdleSpeakers(t *testing.T) { idle(t, 7) }

func idle(t *testing.T, nodes int) {
	if racing {
		t.Skip("the race detector has threads of its own; `make unit` runs this without, too")
	}
	if !inside(t) {
		return
	}
	lasting := idleTime
	if text := os.Getenv(restEnv); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	f := newFleet(t, nodes)
	f.profile = "default"
	f.startAll()
	f.eventually("they have met", func() bool { return f.logged(`msg="members have met"`) == nodes })
	f.owners()
	time.Sleep(2 * time.Second) // what a start leaves behind
	before := map[string]effort{}
	for name, h := range f.hosts {
		before[name] = h.effort()
	}
	time.Sleep(lasting)
	var shares []float64
	for name, h := range f.hosts {
		now, was := h.effort(), before[name]
		seconds := now.At.Sub(was.At).Seconds()
		share, wakes := (now.CPU-was.CPU).Seconds()/seconds*100, float64(now.Wakes-was.Wakes)/seconds
		memory := float64(now.Memory-was.Memory) / seconds
		t.Logf("%s: %.2f %% of a core, woken %.0f times a second, %.0f allocations and %.1f kB a second, %d collections",
			name, share, wakes, float64(now.Objects-was.Objects)/seconds, memory/1024, now.Collections-was.Collections)
		if wakes > idleWakes || memory > idleMemory {
			t.Errorf("%s has nothing to do; its threads wake %.0f times a second, and it takes %.0f kB", name, wakes, memory/1024)
		}
		shares = append(shares, share)
	}
	slices.Sort(shares)
	t.Logf("the median of %d speakers over %v: %.2f %% of a core", nodes, lasting, shares[nodes/2])
}

// effort is what a process has done so far: time on a processor, how often its threads
// have waited, and what memory it has asked for.
type effort struct {
	CPU             time.Duration
	Wakes           int64
	Objects, Memory uint64
	Collections     uint32
	At              time.Time
}

// spent is that of this process.
func spent() effort {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for oneself
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return effort{time.Duration(u.Utime.Nano() + u.Stime.Nano()), int64(u.Nvcsw), m.Mallocs, m.TotalAlloc, m.NumGC, time.Now()}
}

// effort asks the process of a node.
func (h *host) effort() (e effort) {
	h.t.Helper()
	h.tell("spent")
	select {
	case line := <-h.said:
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			h.t.Fatalf("%s said %q: %v", h.name, line, err)
		}
	case <-time.After(10 * time.Second):
		h.t.Fatalf("%s does not say what it has done", h.name)
	}
	return e
}
