package members

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// membersEnv names how many members TestManyMembers has, such as 300,1000: more than the
// few that each run of the tests can afford.
const membersEnv = "QUAYSIDE_TEST_MEMBERS"

// TestManyMembers says how long it takes until all of many members have met, and until all
// know of a death, what a start, rest and a death cost each, and how many are doubted where
// packets are lost. The time of a core is what their work takes here, where no packet passes
// the kernel.
func TestManyMembers(t *testing.T) {
	counts := "12"
	if text := os.Getenv(membersEnv); text != "" {
		counts = text
	}
	for count := range strings.SplitSeq(counts, ",") {
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		for _, profile := range []string{"default", "fast"} {
			t.Run(profile+"/"+count, func(t *testing.T) {
				attended(t, n, 2, profile, func(t *testing.T, s *simulated, all []*Members) { manyMembers(t, s, all) })
			})
		}
	}
}

func manyMembers(t *testing.T, s *simulated, all []*Members) {
	n := len(all)
	const start = 30 * time.Second // nothing is left to say then
	told := after(t, start-s.met, 50*time.Millisecond, all, func(m *Members) bool { return m.state.numTold() == n })
	time.Sleep(start - s.met - told.all)
	t.Logf("a start: all have met after %v, and have heard from all others %v later; in %v each took %v", s.met, told, start, s.cost(0, nil))
	rest := s.cost(40*time.Second, nil)
	t.Logf("at rest each takes in 40 s %v", rest)
	if n := s.wronged(""); n > 0 {
		t.Errorf("all live, and others were missed %d times", n)
	}
	s.split(func(string, string) bool { return rand.IntN(40) == 0 }) // one in 20, since it is asked for both directions
	lossy := s.cost(40*time.Second, nil)
	s.split(nil)
	time.Sleep(5 * time.Second)
	wrong := s.wronged("")
	t.Logf("of each 20 packets one is lost: in 40 s %d wrong doubts, and each takes %v", wrong, lossy)
	if !each(all, func(m *Members) bool { return m.numAlive() == n }) {
		t.Error("one in 20 packets was lost, and some are no members any more")
	}

	const watched = "n5" // by n3 and n4
	living := slices.Concat(all[:4], all[5:])
	s.split(func(a, b string) bool { return a == watched || b == watched })
	var doubted, gone spread
	cost := s.cost(20*time.Second, func() {
		doubted = after(t, 10*time.Second, time.Millisecond, living, func(m *Members) bool { return m.isDoubted(watched) || !m.isAlive(watched) })
		gone = after(t, time.Minute, 20*time.Millisecond, living, func(m *Members) bool { return !m.isAlive(watched) })
	})
	t.Logf("a death: it is doubted after %v, and is no member after %v; in 20 s each took %v", doubted, gone, cost)
	if s.lost.Load() > 0 {
		t.Errorf("%d times something was lost for lack of room", s.lost.Load())
	}
	if n := s.wronged(watched) - wrong; n > 0 {
		t.Errorf("one died, and the others were missed %d times", n)
	}
}

// spread is when something was true for the first half, 99 of 100 and all of some members.
type spread struct{ p50, p99, all time.Duration }

func (s spread) String() string {
	return fmt.Sprintf("%v (p50), %v (p99), %v (all)", s.p50, s.p99, s.all)
}

// after looks at members now and then until something is true for all of them.
func after(t *testing.T, most, step time.Duration, of []*Members, is func(m *Members) bool) (s spread) {
	t.Helper()
	n, began := len(of), time.Now()
	for left := slices.Clone(of); len(left) > 0; time.Sleep(step) {
		left = slices.DeleteFunc(left, is)
		took, done := time.Since(began), n-len(left)
		if took > most {
			t.Fatalf("it is true for %d of %d members after %v", done, n, most)
		}
		if s.p50 == 0 && done*2 >= n {
			s.p50 = took
		}
		if s.p99 == 0 && done*100 >= n*99 {
			s.p99 = took
		}
		s.all = took
	}
	return s
}

// costs are what each of some members took and sent.
type costs struct {
	cpu            time.Duration
	packets, bytes float64
}

func (c costs) String() string {
	return fmt.Sprintf("%.1f ms of a core, %.0f packets and %.1f kB", float64(c.cpu.Microseconds())/1000, c.packets, c.bytes/1024)
}

// cost returns what each member takes and sends in a time that begins with what do does; for
// no time, what it has since all of them began.
func (s *simulated) cost(in time.Duration, do func()) (c costs) {
	var cpu time.Duration
	var packets, bytes int64
	if in > 0 {
		cpu, _, _ = spent()
		packets, bytes = s.packets.Load(), s.bytes.Load()
		began := time.Now()
		if do != nil {
			do()
		}
		time.Sleep(in - time.Since(began))
	} else {
		cpu = s.began
	}
	now, _, _ := spent()
	n := len(s.peers)
	return costs{(now - cpu) / time.Duration(n), float64(s.packets.Load()-packets) / float64(n), float64(s.bytes.Load()-bytes) / float64(n)}
}

// numTold is of how many members this one knows what they say of themselves.
func (s *state) numTold() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.nodes {
		if t.ifacesVersion > 0 {
			n++
		}
	}
	return n
}
