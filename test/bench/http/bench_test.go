package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestMain lets the test binary, run once more, be one of the servers.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// BenchmarkCPUPerRequest is one short round, for `make bench`; the figure of
// each proxy is a metric of its own.
func BenchmarkCPUPerRequest(b *testing.B) {
	for _, tool := range []string{"wrk", "taskset"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.Skipf("%s is not installed", tool)
		}
	}
	for range b.N {
		results, err := compare(b.Context(), plan{duration: 2 * time.Second, rounds: 1})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range results {
			b.ReportMetric(float64(r.cpu.Nanoseconds()), r.name+"-ns/req")
		}
	}
}
