package members

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Who is cut off knows soon that it is alone, and so do those on both sides of a split,
// and others miss one that has died. memberlist asks one member after the other, and each
// that does not answer makes it believe that it is slow itself, up to a multiple of the
// time between its questions: with a long time and a large multiple seven members that
// were all cut off saw each other alive for more than a minute.
func TestTheLostAreMissed(t *testing.T) {
	const n = 7
	for name, c := range map[string]struct {
		apart func(a, b string) bool
		alive func(i int) int // how many one of them still sees
	}{
		"all are cut off":       {func(a, b string) bool { return true }, func(int) int { return 1 }},
		"three and four":        {func(a, b string) bool { return a <= "n3" && b > "n3" }, func(i int) int { return map[bool]int{true: 3, false: 4}[i < 3] }},
		"one has died":          {func(a, b string) bool { return a == "n7" }, func(i int) int { return map[bool]int{true: 1, false: 6}[i == 6] }},
		"one died, and a split": {func(a, b string) bool { return a == "n7" || a <= "n3" && b > "n3" }, func(i int) int { return []int{3, 3, 3, 3, 3, 3, 1}[i] }},
	} {
		for profile, most := range map[string]time.Duration{"default": 15 * time.Second, "fast": 4 * time.Second} {
			t.Run(name+"/"+profile, func(t *testing.T) {
				attended(t, n, 0, profile, func(t *testing.T, s *simulated, all []*Members) {
					whole := func(m *Members) bool { return m.numAlive() == n && m.numDoubted() == 0 }
					if time.Sleep(10 * time.Second); !each(all, whole) {
						t.Fatal("at rest somebody is missed")
					}
					s.split(c.apart)
					left := func(m *Members) int { return c.alive(slices.Index(all, m)) }
					doubted := within(t, 3*time.Second, "who is lost is doubted", func() bool {
						return each(all, func(m *Members) bool { return m.numAlive()-m.numDoubted() == left(m) })
					})
					missed := within(t, most, "who is lost is no member", func() bool {
						return each(all, func(m *Members) bool { return m.numAlive() == left(m) })
					})
					s.split(nil)
					healed := within(t, 5*time.Second, "all have met again", func() bool { return each(all, whole) })
					t.Logf("all doubted after %v, missed after %v, met again %v after healing", doubted, doubted+missed, healed)
				})
			})
		}
	}
}

// Who leaves is gone at once for the others, and does not wait for long until it has told
// them: as long as it listens, they take it for slow and not for dead, and take nothing over.
func TestALeaveIsShort(t *testing.T) {
	for _, n := range []int{2, 3} { // so few that all are told in the first round
		for _, doubts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d members, one doubted: %t", n, doubts), func(t *testing.T) {
				attended(t, n, 0, "default", func(t *testing.T, s *simulated, all []*Members) {
					time.Sleep(10 * time.Second)
					if doubts {
						all[0].doubt(t.Context(), "n2")
					}
					began, left := time.Now(), make(chan time.Duration)
					go func() {
						s.stops[0]()
						left <- time.Since(began)
					}()
					gone := within(t, time.Second, "it is gone", func() bool { return each(all[1:], func(m *Members) bool { return !m.isAlive("n1") }) })
					if took := <-left; took > 500*time.Millisecond || gone > 200*time.Millisecond {
						t.Errorf("it was gone after %v, and left in %v", gone, took)
					}
				})
			})
		}
	}
}

// A heartbeat is a sign of life: who is doubted was seen when the last one came, and not
// when memberlist last had a probe to spare. quayside_failover_seconds begins there.
func TestTheDoubtedWereSeenJustBefore(t *testing.T) {
	for _, profile := range []string{"default", "fast"} {
		attended(t, 7, 2, profile, func(t *testing.T, s *simulated, all []*Members) {
			const dies = "n5" // n3 and n4 watch it
			time.Sleep(30 * time.Second)
			s.split(func(a, _ string) bool { return a == dies })
			died, watcher := time.Now(), all[3]
			within(t, 10*time.Second, "it is doubted", func() bool { return watcher.isDoubted(dies) })
			if before := died.Sub(watcher.View().LastSeen[dies]); before > 2*watcher.timing.watch {
				t.Errorf("profile %s: seen %v before its death, want a heartbeat or two", profile, before)
			}
		})
	}
}
