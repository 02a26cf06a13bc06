package bfd

import (
	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/speaker/bfd/session"
)

// metrics turns what a Detector counts into samples on each scrape.
type metrics struct {
	d       *Detector
	rows    []row
	dropped *prometheus.Desc
}

// row is one metric that every session has.
type row struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*peer) uint64
}

func newMetrics(d *Detector) *metrics {
	m := &metrics{d: d, dropped: prometheus.NewDesc("quayside_bfd_dropped_packets_total", "Packets received that no session heard.", []string{"reason"}, nil)}
	add := func(kind prometheus.ValueType, name, help string, of func(*peer) uint64) {
		m.rows = append(m.rows, row{prometheus.NewDesc("quayside_bfd_"+name, help, []string{"peer"}, nil), kind, of})
	}
	add(prometheus.GaugeValue, "session_up", "Whether the session is up.", func(p *peer) uint64 {
		if p.seen.State == session.Up {
			return 1
		}
		return 0
	})
	add(prometheus.CounterValue, "session_failures_total", "Times the session went down and nobody had asked for it.", func(p *peer) uint64 { return p.failures })
	add(prometheus.CounterValue, "starved_total", "Times this process did not run for longer than the detection time.", func(p *peer) uint64 { return p.starved })
	add(prometheus.CounterValue, "packets_sent_total", "Packets sent.", func(p *peer) uint64 { return p.sent })
	add(prometheus.CounterValue, "packets_received_total", "Packets received that the session heard.", func(p *peer) uint64 { return p.received })
	add(prometheus.CounterValue, "send_errors_total", "Packets that could not be sent.", func(p *peer) uint64 { return p.errors })
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.dropped
	for _, r := range m.rows {
		to <- r.desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.d.mu.Lock()
	defer m.d.unlock()
	for reason, n := range m.d.dropped {
		to <- prometheus.MustNewConstMetric(m.dropped, prometheus.CounterValue, float64(n), reason)
	}
	for _, p := range m.d.have {
		if !p.leaving.IsZero() {
			continue
		}
		for _, r := range m.rows {
			to <- prometheus.MustNewConstMetric(r.desc, r.kind, float64(r.of(p)), p.name)
		}
	}
}
