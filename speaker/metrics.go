package speaker

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/ownership"
)

type metrics struct {
	announcing *prometheus.GaugeVec
	changes    *prometheus.CounterVec
	failover   prometheus.Histogram
	vetoes     prometheus.Counter
	conflicts  prometheus.Counter
	compile    prometheus.Histogram

	problems  atomic.Pointer[[]snapshot.Problem]
	described *prometheus.Desc

	// The fields below belong to the loop.
	last  time.Duration // of a step
	shown map[series]struct{}
}

// series are the labels of one gauge.
type series struct{ namespace, service, ip string }

func newMetrics(to prometheus.Registerer) *metrics {
	m := &metrics{
		announcing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quayside_announced", Help: "1 for each address of a Service that this node announces."}, []string{"namespace", "service", "ip", "protocol"}),
		changes:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quayside_l2_ownership_changes_total", Help: "Addresses taken by this node, by cause, and lost to a better claim (outranked)."}, []string{"reason"}),
		failover: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "quayside_failover_seconds", Help: "From the last sign of life of a dead node to the claim of this one on its address. A successor hears heartbeats, so this is longer than the outage by one of them at most: 0.1 s, or 0.02 s with profile fast.",
			Buckets: []float64{.05, .1, .2, .35, .5, .75, 1, 1.5, 2, 3, 5, 10}}),
		vetoes:    prometheus.NewCounter(prometheus.CounterOpts{Name: "quayside_l2_vetoes_total", Help: "Takeovers that the LAN refused because somebody answered."}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{Name: "quayside_l2_conflicts_total", Help: "Strangers seen to claim an address of this node."}),
		compile: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "quayside_announce_compile_seconds", Help: "How long a plan took.",
			Buckets: prometheus.ExponentialBuckets(.0001, 4, 8)}),
		described: prometheus.NewDesc("quayside_problems", "Problems by kind of object and reason.", []string{"kind", "reason"}, prometheus.Labels{"component": "speaker"}),
		shown:     map[series]struct{}{},
	}
	m.problems.Store(&[]snapshot.Problem{})
	if to != nil {
		to.MustRegister(m.announcing, m.changes, m.failover, m.vetoes, m.conflicts, m.compile, m)
	}
	return m
}

// Describe implements prometheus.Collector for quayside_problems.
func (m *metrics) Describe(to chan<- *prometheus.Desc) { to <- m.described }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	count := map[[2]string]int{}
	for _, p := range *m.problems.Load() {
		count[[2]string{p.Object.Kind, p.Reason}]++
	}
	for labels, n := range count {
		to <- prometheus.MustNewConstMetric(m.described, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}

// stepped records how long a step took in which so many plans were compiled.
func (m *metrics) stepped(took time.Duration, plans int) {
	m.last = took
	for range plans {
		m.compile.Observe(took.Seconds() / float64(plans))
	}
}

// count counts a change to an address.
func (m *metrics) count(c ownership.Change) {
	switch c.Kind {
	case ownership.Taken:
		m.changes.WithLabelValues(string(c.Cause)).Inc()
		if c.Outage > 0 {
			m.failover.Observe(c.Outage.Seconds())
		}
	case ownership.Lost:
		m.changes.WithLabelValues("outranked").Inc()
	case ownership.NotTaken:
		m.vetoes.Inc()
	case ownership.Contested:
		m.conflicts.Inc()
	}
}

// announced sets quayside_announced to exactly these addresses and their Services, and
// deletes the series of others.
func (m *metrics) announced(addresses map[netip.Addr]ownership.Announcement, answers map[netip.Addr]announce.Answer) {
	next := make(map[series]struct{}, len(addresses))
	for a := range addresses {
		for _, svc := range answers[a].Services {
			s := series{svc.Namespace, svc.Name, a.String()}
			next[s] = struct{}{}
			if _, ok := m.shown[s]; !ok {
				m.announcing.WithLabelValues(s.namespace, s.service, s.ip, "l2").Set(1)
			}
		}
	}
	for s := range m.shown {
		if _, ok := next[s]; !ok {
			m.announcing.DeleteLabelValues(s.namespace, s.service, s.ip, "l2")
		}
	}
	m.shown = next
}
