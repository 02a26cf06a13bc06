package dispatch

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// histogram counts durations. Its limits double from a unit, 1 ms if nobody says
// otherwise, so that a duration finds its bucket by the length of its binary number,
// without a search.
type histogram struct {
	buckets [numBounds + 1]atomic.Uint64
	nanos   atomic.Uint64
}

const (
	// numBounds is how many limits there are: from 1 ms to over a minute.
	numBounds = 17
	// ownUnit is the unit of what the proxy itself takes: from 16 µs to over a second.
	ownUnit = 16 * time.Microsecond

	// every shows each limit of a histogram, and everyOther half of them, where three
	// series of a request's time would be too many otherwise.
	every, everyOther = 1, 2
)

// boundOf is the upper limit of bucket i.
func boundOf(i int, unit time.Duration) time.Duration { return unit << i }

// bucketOf is the first bucket whose limit d does not exceed.
func bucketOf(d, unit time.Duration) int {
	if d <= unit {
		return 0
	}
	return min(bits.Len64(uint64((d-1)/unit)), numBounds)
}

func (h *histogram) observe(d, unit time.Duration) {
	h.buckets[bucketOf(d, unit)].Add(1)
	h.nanos.Add(uint64(max(d, 0)))
}

// metric returns what h has counted, by the limits that step leaves; nil for nothing.
func (h *histogram) metric(desc *prometheus.Desc, unit time.Duration, step int, labels []string) prometheus.Metric {
	var total uint64
	buckets := map[float64]uint64{}
	for i := range h.buckets {
		total += h.buckets[i].Load()
		if i < numBounds && i%step == 0 {
			buckets[boundOf(i, unit).Seconds()] = total
		}
	}
	if total == 0 {
		return nil
	}
	return prometheus.MustNewConstHistogram(desc, total, time.Duration(h.nanos.Load()).Seconds(), buckets, labels...)
}
