package bfd

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"quayside.io/speaker/bfd/session"
)

// BenchmarkHundredSessions prints which share of a processor a hundred sessions
// at 50 ms take: both ends of fifty, with what the kernel's loopback does for them.
func BenchmarkHundredSessions(b *testing.B) {
	d := start(b)
	want := map[string]Session{}
	for i := range 50 {
		want[fmt.Sprintf("here %d", i)], want[fmt.Sprintf("there %d", i)] = talk(i, false)
	}
	d.Set(&Want{want})
	d.await("up at 50 ms", func(all map[string]Status) bool {
		for name := range want {
			if st := all[name]; st.State != session.Up || st.Detection != 150*ms {
				return false
			}
		}
		return true
	})
	var before, after runtime.MemStats
	packets := d.counter("quayside_bfd_packets_sent_total", "")
	runtime.ReadMemStats(&before)
	busy, began := processorTime(b), time.Now()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	took := time.Since(began).Seconds()
	runtime.ReadMemStats(&after)
	b.ReportMetric(100*(processorTime(b)-busy).Seconds()/took, "%core")
	b.ReportMetric((d.counter("quayside_bfd_packets_sent_total", "")-packets)/took, "sent/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/took, "mallocs/s")
	var failures uint64
	for _, st := range d.State() {
		failures += st.Failures
	}
	b.ReportMetric(float64(failures), "failures")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
