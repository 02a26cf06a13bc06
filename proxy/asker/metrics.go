package asker

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type stats struct {
	answered, unanswered     atomic.Uint64
	nanos                    atomic.Uint64
	arrived, failed, dropped atomic.Uint64
}

func (s *stats) asked(took time.Duration, err error) {
	s.nanos.Add(uint64(took))
	if err != nil {
		s.unanswered.Add(1)
	} else {
		s.answered.Add(1)
	}
}

func (s *stats) copied(err error) {
	if err != nil {
		s.failed.Add(1)
	} else {
		s.arrived.Add(1)
	}
}

// Collector returns the metrics of a.
func (a *Asker) Collector() prometheus.Collector {
	return &collector{
		asker: a,
		asked: prometheus.NewDesc("quayside_auth_requests_total",
			"Questions to authentication services (auth-url), by whether an answer came.", []string{"result"}, nil),
		seconds: prometheus.NewDesc("quayside_auth_request_seconds_total", "Time that requests have waited for those answers.", nil, nil),
		copied: prometheus.NewDesc("quayside_mirror_requests_total",
			"Copies of requests (mirror-target): arrived, failed, or dropped because too much was under way.", []string{"result"}, nil),
	}
}

type collector struct {
	asker                  *Asker
	asked, seconds, copied *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.asked, c.seconds, c.copied} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := &c.asker.stats
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(c.asked, s.answered.Load(), "answered")
	count(c.asked, s.unanswered.Load(), "failed")
	ch <- prometheus.MustNewConstMetric(c.seconds, prometheus.CounterValue, time.Duration(s.nanos.Load()).Seconds())
	count(c.copied, s.arrived.Load(), "arrived")
	count(c.copied, s.failed.Load(), "failed")
	count(c.copied, s.dropped.Load(), "dropped")
}
