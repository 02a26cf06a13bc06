package speaker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	idleTime = 3 * time.Second
	// idleWakes is about three times what gossip of the default profile takes, and the
	// beats for those who would follow. What turns in circles, or asks when it could be
	// told, takes thousands.
	idleWakes = 800
)

// TestIdleSpeakers says what a whole speaker costs that has nothing to do, and fails
// where something wakes it that need not. A busy machine wakes it no more often.
func TestIdleSpeakers(t *testing.T) {
	if racing {
		t.Skip("the race detector has threads of its own; `make unit` runs this without, too")
	}
	if !inside(t) {
		return
	}
	f := newFleet(t, 3)
	f.profile = "default"
	f.startAll()
	f.eventually("they have met", func() bool { return f.logged(`msg="members have met"`) == 3 })
	f.owners()
	before := map[string]effort{}
	for name, h := range f.hosts {
		before[name] = h.effort()
	}
	time.Sleep(idleTime)
	for name, h := range f.hosts {
		now, was := h.effort(), before[name]
		seconds := now.at.Sub(was.at).Seconds()
		wakes := float64(now.wakes-was.wakes) / seconds
		t.Logf("%s: %.2f %% of a core, woken %.0f times a second", name, (now.cpu-was.cpu).Seconds()/seconds*100, wakes)
		if wakes > idleWakes {
			t.Errorf("%s has nothing to do, and its threads wake %.0f times a second", name, wakes)
		}
	}
}

// effort is what a process has done so far: time on a processor, and how often its
// threads were given one.
type effort struct {
	cpu   time.Duration
	wakes int64
	at    time.Time
}

func (h *host) effort() effort {
	h.t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", h.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		h.t.Fatalf("no threads of %s: %v", h.name, err)
	}
	e := effort{at: time.Now()}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // it has just ended
		}
		var ran, waited, times int64
		if _, err := fmt.Sscan(string(text), &ran, &waited, &times); err != nil {
			h.t.Fatalf("%s: %q: %v", task, text, err)
		}
		e.cpu += time.Duration(ran)
		e.wakes += times
	}
	return e
}
