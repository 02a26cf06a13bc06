package waf

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stats are what a Driver counts.
type stats struct {
	passed, detected, refused, unsaid *atomic.Uint64
	asked                             *atomic.Int64
	took                              prometheus.Histogram
}

func newStats() stats {
	return stats{
		passed: new(atomic.Uint64), detected: new(atomic.Uint64), refused: new(atomic.Uint64), unsaid: new(atomic.Uint64),
		asked: new(atomic.Int64),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quayside_modsecurity_compile_seconds", Help: "Time to compile a rule set of the firewall.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
	}
}

func (s *stats) next() int { return int(s.asked.Add(1)) }

func (s *stats) compiled(took time.Duration, _ error) { s.took.Observe(took.Seconds()) }

// Collector returns the metrics of d.
func (d *Driver) Collector() prometheus.Collector {
	return &collector{
		driver: d,
		requests: prometheus.NewDesc("quayside_modsecurity_requests_total",
			"Requests that the firewall has looked at, by what became of them: passed, detected (logged, and passed), refused.", []string{"verdict"}, nil),
		sets: prometheus.NewDesc("quayside_modsecurity_rule_sets",
			"Different sets of rules that routes ask for: in force, or not, so that their routes are closed.", []string{"state"}, nil),
		unsaid: prometheus.NewDesc("quayside_modsecurity_log_lines_dropped_total",
			"Requests of which the log says nothing, because there were too many.", nil, nil),
	}
}

type collector struct {
	driver                 *Driver
	requests, sets, unsaid *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.requests, c.sets, c.unsaid} {
		ch <- d
	}
	c.driver.stats.took.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	d := c.driver
	for verdict, n := range map[string]*atomic.Uint64{"passed": d.stats.passed, "detected": d.stats.detected, "refused": d.stats.refused} {
		ch <- prometheus.MustNewConstMetric(c.requests, prometheus.CounterValue, float64(n.Load()), verdict)
	}
	ch <- prometheus.MustNewConstMetric(c.unsaid, prometheus.CounterValue, float64(d.stats.unsaid.Load()))
	states := map[string]int{"ready": 0, "closed": 0}
	d.mu.Lock()
	for _, s := range d.sets {
		if s.waf.Load() != nil {
			states["ready"]++
		} else {
			states["closed"]++
		}
	}
	d.mu.Unlock()
	for state, n := range states {
		ch <- prometheus.MustNewConstMetric(c.sets, prometheus.GaugeValue, float64(n), state)
	}
	d.stats.took.Collect(ch)
}
