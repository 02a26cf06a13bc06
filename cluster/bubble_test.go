package cluster

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// inMadeUpTime is synctest.Test, and under the race detector on one processor. On two,
// timers of one bubble run at the same time in its one context, and the detector crashes:
// with Go 1.26.8 a fleet of 200 did in twelve of sixteen runs, and on one in none of six.
func inMadeUpTime(t *testing.T, test func(t *testing.T)) {
	if racing {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, test)
}
