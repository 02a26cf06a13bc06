package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// latencyMemory is how fast PeakEWMA forgets: a sample so old weighs 1/e.
const latencyMemory = 10 * time.Second

// load is what one endpoint has to do, as this proxy sees it.
type load struct {
	active  atomic.Int64
	latency atomic.Uint64 // see sample
	joined  atomic.Int64  // unix nanoseconds, 0 for endpoints that were there first
}

// begin counts a request, unless limit are under way; 0 is no limit.
func (l *load) begin(limit int) bool {
	if limit <= 0 {
		l.active.Add(1)
		return true
	}
	for {
		n := l.active.Load()
		if n >= int64(limit) {
			return false
		}
		if l.active.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (l *load) full(limit int) bool { return limit > 0 && l.active.Load() >= int64(limit) }

// sample packs a latency in microseconds and when it was measured, in
// milliseconds modulo 2^32, into one word, so that both change at once.
func sample(micros float32, at uint32) uint64 {
	return uint64(math.Float32bits(micros))<<32 | uint64(at)
}

func millis(t time.Time) uint32 { return uint32(t.UnixMilli()) }

// observe takes one measured latency. A peak counts at once, or a pod that got
// slow would be sent requests for as long as the mean takes to follow.
func (l *load) observe(now time.Time, took time.Duration) {
	fresh := float32(took) / float32(time.Microsecond)
	for {
		old := l.latency.Load()
		mean := math.Float32frombits(uint32(old >> 32))
		if fresh < mean {
			w := float32(decay(millis(now) - uint32(old)))
			fresh = mean*w + fresh*(1-w)
		}
		if l.latency.CompareAndSwap(old, sample(fresh, millis(now))) {
			return
		}
		fresh = float32(took) / float32(time.Microsecond)
	}
}

// timed reports whether a latency was ever measured.
func (l *load) timed() bool { return l.latency.Load() != 0 }

// expected is the latency in microseconds that is expected now: an endpoint
// that is not asked is slowly forgiven.
func (l *load) expected(now time.Time) float64 {
	old := l.latency.Load()
	return float64(math.Float32frombits(uint32(old>>32))) * decay(millis(now)-uint32(old))
}

// decay is the weight that a sample keeps after so many milliseconds. Clocks of
// two cores may differ, so an age near 2^32 is one of nothing.
func decay(age uint32) float64 {
	if int32(age) <= 0 {
		return 1
	}
	return math.Exp(-float64(age) / float64(latencyMemory.Milliseconds()))
}
