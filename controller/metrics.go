package controller

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics of a Controller. What follows from the snapshot is computed when asked.
type metrics struct {
	controller *Controller
	applied    prometheus.Histogram
	leading    *prometheus.Desc
	pools      *prometheus.Desc
	problems   *prometheus.Desc
}

func newMetrics(h *Controller) *metrics {
	component := prometheus.Labels{"component": "controller"}
	return &metrics{
		controller: h,
		applied: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quayside_config_apply_seconds", Help: "Time from a change seen to the plan in force.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14), ConstLabels: component,
		}),
		leading:  prometheus.NewDesc("quayside_leading", "1 if this process is the leader.", nil, nil),
		pools:    prometheus.NewDesc("quayside_pool_addresses", "Addresses of a pool by state, as the leader counts them.", []string{"pool", "family", "state"}, nil),
		problems: prometheus.NewDesc("quayside_problems", "Problems by kind of object and reason.", []string{"kind", "reason"}, component),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.applied.Describe(ch)
	ch <- m.leading
	ch <- m.pools
	ch <- m.problems
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.applied.Collect(ch)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := map[[2]string]int{}
	for _, p := range m.controller.Problems() {
		count[[2]string{p.Object.Kind, p.Reason}]++
	}
	for labels, n := range count {
		gauge(m.problems, float64(n), labels[0], labels[1])
	}
	if !m.controller.leading.Load() {
		gauge(m.leading, 0)
		return // pools are counted once per cluster, by the leader
	}
	gauge(m.leading, 1)
	for k, p := range m.controller.options.Source.Snapshot().IPAddressPools.All() {
		gauge(m.pools, float64(p.Status.AssignedIPv4), k.Name, "ipv4", "assigned")
		gauge(m.pools, float64(p.Status.AvailableIPv4), k.Name, "ipv4", "available")
		gauge(m.pools, float64(p.Status.AssignedIPv6), k.Name, "ipv6", "assigned")
		gauge(m.pools, float64(p.Status.AvailableIPv6), k.Name, "ipv6", "available")
	}
}
