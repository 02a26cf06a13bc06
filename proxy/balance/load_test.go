package balance

import (
	"math"
	"testing"
	"time"
)

// TestLatencyIsRemembered: a peak counts at once, what is lower by and by, and who is not
// asked is forgiven.
func TestLatencyIsRemembered(t *testing.T) {
	const ms = time.Millisecond
	kept := func(after time.Duration) float64 { return math.Exp(-after.Seconds() / latencyMemory.Seconds()) }
	for name, c := range map[string]struct {
		samples []time.Duration // ten seconds apart
		later   time.Duration   // after the last
		want    float64         // in microseconds
	}{
		"the first":             {[]time.Duration{100 * ms}, 0, 100_000},
		"a peak":                {[]time.Duration{10 * ms, 100 * ms}, 0, 100_000},
		"back to what it was":   {[]time.Duration{100 * ms, 10 * ms}, 0, 100_000*kept(10*time.Second) + 10_000*(1-kept(10*time.Second))},
		"as it was":             {[]time.Duration{10 * ms, 10 * ms}, 0, 10_000},
		"not asked for long":    {[]time.Duration{100 * ms}, 30 * time.Second, 100_000 * kept(30*time.Second)},
		"a clock that is ahead": {[]time.Duration{100 * ms}, -time.Second, 100_000},
	} {
		var l load
		now := time.Unix(1_700_000_000, 0)
		for i, took := range c.samples {
			if i > 0 {
				now = now.Add(10 * time.Second)
			}
			l.observe(now, took)
		}
		if got := l.expected(now.Add(c.later)); math.Abs(got-c.want) > c.want/1000 {
			t.Errorf("%s: %v µs are expected, wanted %v", name, got, c.want)
		}
	}
}

// TestRequestsUnderWayEnd: what is over counts neither for the endpoint nor for the share
// that bounds it.
func TestRequestsUnderWayEnd(t *testing.T) {
	s, p := hashed(3, 2), &Picker{}
	for range 5 {
		for range 2 {
			if !p.Begin(s, 1) {
				t.Fatal("there is room")
			}
		}
		if p.Begin(s, 1) || p.active.Load() != 2 {
			t.Fatalf("beyond the limit; %d are under way", p.active.Load())
		}
		p.End(s.Endpoints[1].Health)
		p.End(s.Endpoints[1].Health)
		if n, all := s.Endpoints[1].Health.active.Load(), p.active.Load(); n != 0 || all != 0 {
			t.Fatalf("%d and %d are under way", n, all)
		}
	}
}
