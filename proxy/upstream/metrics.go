package upstream

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// stats counts what happens behind one backend. The path of a request that goes
// well touches none of it.
type stats struct {
	dials    atomic.Uint64
	retries  atomic.Uint64
	failures [numReasons]atomic.Uint64
}

func (s *stats) count(r reason) { s.failures[r].Add(1) }

// Collector returns the metrics of e. Their labels are the Services that routes
// name and the fixed list of reasons.
func (e *Engine) Collector() prometheus.Collector {
	labels := []string{"namespace", "service", "port"}
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("quayside_http_upstream_"+name, help, append(labels[:3:3], more...), nil)
	}
	return &collector{
		engine:      e,
		dials:       desc("connects_total", "Connections opened to endpoints, or tried."),
		retries:     desc("retries_total", "Requests sent once more because a connection failed unseen."),
		failures:    desc("failures_total", "Requests that got no response from an endpoint.", "reason"),
		connections: desc("connections", "Open connections to endpoints.", "state"),
		endpoints:   desc("endpoints", "Endpoints that requests may be sent to."),
		tunnels:     prometheus.NewDesc("quayside_http_upstream_tunnels", "Upgraded connections.", nil, nil),
	}
}

type collector struct {
	engine                                                    *Engine
	dials, retries, failures, connections, endpoints, tunnels *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.tunnels, prometheus.GaugeValue, float64(c.engine.Tunnels()))
	for _, b := range c.engine.list() {
		labels := []string{b.of.Service.Namespace, b.of.Service.Name, b.of.Port.String()}
		send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, t, v, append(labels[:3:3], more...)...)
		}
		send(c.dials, prometheus.CounterValue, float64(b.stats.dials.Load()))
		send(c.retries, prometheus.CounterValue, float64(b.stats.retries.Load()))
		for r := range numReasons {
			if n := b.stats.failures[r].Load(); n > 0 {
				send(c.failures, prometheus.CounterValue, float64(n), r.String())
			}
		}
		st := b.state.Load()
		active, idle := 0, 0
		for _, e := range st.endpoints {
			a, i := e.counts()
			active, idle = active+a, idle+i
		}
		send(c.connections, prometheus.GaugeValue, float64(active), "active")
		send(c.connections, prometheus.GaugeValue, float64(idle), "idle")
		send(c.endpoints, prometheus.GaugeValue, float64(len(st.set.Endpoints)))
	}
}
