package members

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// membersEnv names how many members TestManyMembers has, such as 300,1000: more than the
// few that each run of the tests can afford.
const membersEnv = "QUAYSIDE_TEST_MEMBERS"

// TestManyMembers says what a member of many costs at rest and at a death, and how long it
// takes until all know of the death. The time of a core is what their work takes here, where
// no packet passes the kernel.
func TestManyMembers(t *testing.T) {
	counts := "20"
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
	time.Sleep(20 * time.Second) // what a start leaves behind
	const rest = 40 * time.Second
	n := float64(len(all))
	cpu, _, _ := spent()
	packets, bytes := s.packets.Load(), s.bytes.Load()
	time.Sleep(rest)
	after, _, _ := spent()
	per := n * rest.Seconds()
	t.Logf("at rest each takes %.3f %% of a core and sends %.1f packets and %.1f kB in a second",
		(after-cpu).Seconds()/per*100, float64(s.packets.Load()-packets)/per, float64(s.bytes.Load()-bytes)/per/1024)

	const watched = "n5" // by n3 and n4
	living := append(append([]*Members{}, all[:4]...), all[5:]...)
	s.split(func(a, _ string) bool { return a == watched })
	cpu, _, _ = spent()
	packets = s.packets.Load()
	first := within(t, 10*time.Second, "who watches it doubts it", func() bool { return all[3].isDoubted(watched) })
	doubted := first + within(t, 10*time.Second, "all doubt it", func() bool {
		return each(living, func(m *Members) bool { return m.isDoubted(watched) || !m.isAlive(watched) })
	})
	missed := doubted + within(t, time.Minute, "it is no member", func() bool {
		return each(living, func(m *Members) bool { return !m.isAlive(watched) })
	})
	time.Sleep(10 * time.Second)
	after, _, _ = spent()
	t.Logf("a death: who watches it doubts it after %v, all after %v, and it is no member for all after %v; until ten seconds later each took %.1f ms of a core and sent %d packets",
		first, doubted, missed, (after-cpu).Seconds()/n*1000, (s.packets.Load()-packets)/int64(n))
	if wrong := len(living) - 1; !each(living, func(m *Members) bool { return m.numAlive() == wrong+1 && m.numDoubted() == 0 }) {
		t.Error("one death made others be missed")
	}
}
