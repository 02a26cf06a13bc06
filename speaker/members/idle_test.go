package members

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkIdle is what a member costs that has nothing to say: time of a core, memory, and
// bytes sent, in a second among so many. The bytes are those of the loopback interface, so
// this belongs into a network of its own.
func BenchmarkIdle(b *testing.B) {
	for _, row := range []struct {
		profile string
		members int
	}{{"default", 5}, {"fast", 5}, {"default", 100}, {"default", 300}, {"default", 1000}} {
		b.Run(fmt.Sprintf("%s/%d", row.profile, row.members), func(b *testing.B) {
			f := newFleet(b, 90, row.members)
			f.profile = row.profile
			var all []*Members
			for i := range row.members {
				m, _ := f.start(i, f.keyFile)
				all = append(all, m)
			}
			for _, m := range all {
				for within := time.Now().Add(3 * time.Minute); len(m.View().Alive) != row.members; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(within) {
						b.Fatalf("of %d members one sees %d", row.members, len(m.View().Alive))
					}
				}
			}
			time.Sleep(5 * time.Second) // what a start leaves behind
			cpu, memory, began := spent()
			bytes := received(b)
			for b.Loop() {
				time.Sleep(time.Second)
			}
			cpuNow, memoryNow, now := spent()
			seconds := now.Sub(began).Seconds() * float64(row.members)
			b.ReportMetric((cpuNow-cpu).Seconds()/seconds*100, "%core/member")
			b.ReportMetric(float64(memoryNow-memory)/seconds/1024, "kB/s/member")
			b.ReportMetric(float64(received(b)-bytes)/seconds/1024, "kB-sent/s/member")
			lost := 0
			for _, m := range all {
				lost += row.members - len(m.View().Alive)
			}
			b.ReportMetric(float64(lost), "missed")
		})
	}
}

// received is how many bytes the loopback interface has carried.
func received(b *testing.B) (bytes int64) {
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		b.Skip(err)
	}
	_, lo, _ := strings.Cut(string(text), "lo:")
	if _, err := fmt.Sscan(lo, &bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}

// spent is what this process has used so far.
func spent() (cpu time.Duration, allocated uint64, at time.Time) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for oneself
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.TotalAlloc, time.Now()
}
