package upstream

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stats counts what happens behind one backend. The path of a request that goes
// well touches none of it.
type stats struct {
	dials    atomic.Uint64
	retries  atomic.Uint64
	hedges   atomic.Uint64
	failures [numReasons]atomic.Uint64
	told     [numReasons]atomic.Int64 // when a failure was last logged, in ns of Unix time
}

func (s *stats) count(r reason) { s.failures[r].Add(1) }

// logEvery bounds how often the log has one reason of one Service.
const logEvery = 10 * time.Second

// worthALine reports whether the log has not had a failure of that kind for long.
func (s *stats) worthALine(r reason, now time.Time) bool {
	last := s.told[r].Load()
	return now.UnixNano()-last >= int64(logEvery) && s.told[r].CompareAndSwap(last, now.UnixNano())
}

// Collector returns the metrics of e. Their labels are the Services that routes
// name and the fixed list of reasons.
func (e *Engine) Collector() prometheus.Collector {
	labels := []string{"namespace", "service", "port"}
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("quayside_http_upstream_"+name, help, append(labels[:3:3], more...), nil)
	}
	whole := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("quayside_http_upstream_"+name, help, nil, nil)
	}
	return &collector{
		engine:      e,
		dials:       desc("connects_total", "Connections opened to endpoints, or tried."),
		retries:     desc("retries_total", "Requests sent once more because a connection failed unseen."),
		hedges:      desc("hedges_total", "Other endpoints tried because a connection took long to be made."),
		failures:    desc("failures_total", "Requests that got no response from an endpoint.", "reason"),
		connections: desc("connections", "Open connections to endpoints.", "state"),
		faults: desc("endpoint_failures_total", "Tries in which an endpoint failed: it refused, was silent, broke off or answered what the route wants of another. "+
			"Of "+strconv.Itoa(maxFaulty)+" endpoints of a Service port; those beyond have an empty label. An endpoint that leaves takes its number along.", "endpoint"),
		endpoints: desc("endpoints", "Endpoints that requests may be sent to."),
		tunnels:   whole("tunnels", "Upgraded connections."),
		open:      whole("connections_open", "Connections to all endpoints together that are open, or being made."),
		limit:     whole("connections_limit", "How many connections to all endpoints together there may be at once."),
		refused:   whole("connections_refused_total", "Connections to endpoints that were not made, since there were as many as there may be."),
		spared:    whole("connections_spared_total", "Idle connections to endpoints that were closed for the sake of new ones, since there were as many as there may be."),
	}
}

type collector struct {
	engine                                                                    *Engine
	dials, retries, hedges, failures, faults, connections, endpoints, tunnels *prometheus.Desc
	open, limit, refused, spared                                              *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.dials, c.retries, c.hedges, c.failures, c.faults, c.connections, c.endpoints, c.tunnels, c.open, c.limit, c.refused, c.spared} {
		ch <- d
	}
}

// maxFaulty bounds the series of one Service port.
const maxFaulty = 100

// totals are the sums over the backends of one Service port. There are several
// where routes name it in different ways: by number, by name, by a class that
// ignores the Local policy.
type totals struct {
	dials, retries, hedges, active, idle, endpoints float64
	failures                                        [numReasons]float64
	faults                                          map[string]float64 // by endpoint
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.tunnels, prometheus.GaugeValue, float64(c.engine.Tunnels()))
	places := &c.engine.places
	ch <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(places.open.Load()))
	ch <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(c.engine.keeping.Load().MaxOpen))
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(places.refused.Load()))
	ch <- prometheus.MustNewConstMetric(c.spared, prometheus.CounterValue, float64(places.spared.Load()))
	sums := map[[3]string]*totals{}
	for _, b := range c.engine.list() {
		labels := [3]string{b.of.Service.Namespace, b.of.Service.Name, b.of.Port.String()}
		if sums[labels] == nil {
			sums[labels] = &totals{faults: map[string]float64{}}
		}
		sums[labels].add(b)
	}
	for labels, t := range sums {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append(labels[:3:3], more...)...)
		}
		send(c.dials, prometheus.CounterValue, t.dials)
		send(c.retries, prometheus.CounterValue, t.retries)
		send(c.hedges, prometheus.CounterValue, t.hedges)
		for r, n := range t.failures {
			if n > 0 {
				send(c.failures, prometheus.CounterValue, n, reason(r).String())
			}
		}
		for endpoint, n := range t.faults {
			send(c.faults, prometheus.CounterValue, n, endpoint)
		}
		send(c.connections, prometheus.GaugeValue, t.active, "active")
		send(c.connections, prometheus.GaugeValue, t.idle, "idle")
		send(c.endpoints, prometheus.GaugeValue, t.endpoints)
	}
}

func (t *totals) add(b *Backend) {
	t.dials += float64(b.stats.dials.Load())
	t.retries += float64(b.stats.retries.Load())
	t.hedges += float64(b.stats.hedges.Load())
	for r := range numReasons {
		t.failures[r] += float64(b.stats.failures[r].Load())
	}
	for _, e := range b.state.Load().endpoints {
		active, idle := e.counts()
		t.active += float64(active)
		t.idle += float64(idle)
		t.endpoints++
		if n := e.failed.Load(); n > 0 {
			t.fault(e.text, float64(n))
		}
	}
}

// fault adds n failures of an endpoint.
func (t *totals) fault(endpoint string, n float64) {
	if _, known := t.faults[endpoint]; !known && len(t.faults) >= maxFaulty {
		endpoint = ""
	}
	t.faults[endpoint] += n
}
