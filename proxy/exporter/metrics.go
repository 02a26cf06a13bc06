package exporter

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector returns the metrics of e.
func (e *Exporter) Collector() prometheus.Collector {
	return &collector{e, prometheus.NewDesc("quayside_http_spans_total",
		"Spans of sampled requests: exported to the collector of OpenTelemetry, dropped because they came faster than it took them, or failed because it did not.", []string{"result"}, nil)}
}

type collector struct {
	exporter *Exporter
	spans    *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.spans }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	e := c.exporter
	for result, n := range map[string]*atomic.Uint64{"exported": &e.exported, "dropped": &e.dropped, "failed": &e.failed} {
		ch <- prometheus.MustNewConstMetric(c.spans, prometheus.CounterValue, float64(n.Load()), result)
	}
}
