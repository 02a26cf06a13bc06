package members

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkIdle is what a member costs that has nothing to say: time of a core, and
// memory, in a second among so many.
func BenchmarkIdle(b *testing.B) {
	for _, profile := range []string{"default", "fast"} {
		b.Run(profile, func(b *testing.B) {
			const members = 5
			f := newFleet(b, 90, members)
			f.profile = profile
			var all []*Members
			for i := range members {
				m, _ := f.start(i, f.keyFile)
				all = append(all, m)
			}
			for _, m := range all {
				eventually(b, "all have met", func() bool { return len(m.View().Alive) == members })
			}
			time.Sleep(time.Second) // what a start leaves behind
			cpu, memory, began := spent()
			for b.Loop() {
				time.Sleep(time.Second)
			}
			cpuNow, memoryNow, now := spent()
			seconds := now.Sub(began).Seconds() * members
			b.ReportMetric((cpuNow-cpu).Seconds()/seconds*100, "%core/member")
			b.ReportMetric(float64(memoryNow-memory)/seconds/1024, "kB/s/member")
		})
	}
}

// spent is what this process has used so far.
func spent() (cpu time.Duration, allocated uint64, at time.Time) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for oneself
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.TotalAlloc, time.Now()
}
