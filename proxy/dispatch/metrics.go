package dispatch

import (
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// series counts the requests of one Service behind one Ingress. A request costs
// seven atomic additions; names and labels are looked up when a route is first
// used.
type series struct {
	classes [5]atomic.Pointer[[100]atomic.Uint64] // by status
	took    histogram                             // the whole
	waited  histogram                             // for endpoints
	own     histogram                             // in the proxy, in ownUnit
	broken  atomic.Uint64
	passed  passedOn
}

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

// metric returns what h has counted, nil for nothing.
func (h *histogram) metric(desc *prometheus.Desc, unit time.Duration, labels []string) prometheus.Metric {
	var total uint64
	buckets := map[float64]uint64{}
	for i := range h.buckets {
		total += h.buckets[i].Load()
		if i < numBounds {
			buckets[boundOf(i, unit).Seconds()] = total
		}
	}
	if total == 0 {
		return nil
	}
	return prometheus.MustNewConstHistogram(desc, total, time.Duration(h.nanos.Load()).Seconds(), buckets, labels...)
}

type seriesKey struct{ ingress, service snapshot.Key }

func (s *series) observe(status int, d time.Duration) {
	if status < 100 || status > 599 {
		status = 500
	}
	class := &s.classes[status/100-1]
	codes := class.Load()
	if codes == nil {
		class.CompareAndSwap(nil, new([100]atomic.Uint64))
		codes = class.Load()
	}
	codes[status%100].Add(1)
	s.took.observe(d, time.Millisecond)
}

// split observes whose a request's time was.
func (s *series) split(ex *exchange.Exchange, took time.Duration) {
	u := &ex.Upstream
	if len(u.Tries) == 0 {
		s.own.observe(took, ownUnit)
		return
	}
	s.waited.observe(u.Waited, time.Millisecond)
	own := took - u.Waited
	if last := u.Last(); last.Took > last.Header {
		own = u.Began.Sub(ex.Request.Received) // the rest was the pace of two others
	}
	s.own.observe(own, ownUnit)
}

func (s *series) broke() { s.broken.Add(1) }

// metrics are those of one Dispatcher.
type metrics struct {
	unrouted *series // requests that no route is for
	panics   atomic.Uint64

	mu     sync.Mutex
	series map[seriesKey]*series
}

func newMetrics() *metrics {
	unrouted := &series{}
	return &metrics{unrouted: unrouted, series: map[seriesKey]*series{{}: unrouted}}
}

func (m *metrics) get(k seriesKey) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[k]
	if s == nil {
		s = &series{}
		m.series[k] = s
	}
	return s
}

// prune forgets the series that no route of t feeds any more.
func (m *metrics) prune(t *route.Table) {
	live := map[seriesKey]bool{{}: true}
	for r := range t.Routes() {
		live[seriesKey{r.Owner.Key, r.Service}] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.series {
		if !live[k] {
			delete(m.series, k)
		}
	}
}

// Collector returns the metrics of d.
func (d *Dispatcher) Collector() prometheus.Collector {
	labels := []string{"namespace", "ingress", "service"}
	return &collector{
		dispatcher: d,
		requests: prometheus.NewDesc("quayside_http_requests_total",
			"Requests answered. The labels are empty where no route matched.", append(labels[:3:3], "code"), nil),
		duration: prometheus.NewDesc("quayside_http_request_duration_seconds",
			"Time from the end of the request's head to the end of the response.", labels, nil),
		waited: prometheus.NewDesc("quayside_http_upstream_wait_seconds",
			"Time of a request in which endpoints were waited for: for connections, heads and pieces of bodies. Requests without a try are not in it.", labels, nil),
		own: prometheus.NewDesc("quayside_http_overhead_seconds",
			"Time of a request that was the proxy's own, filters that ask others included: all but the wait for endpoints or, where a body was streamed, what was before it.", labels, nil),
		broken: prometheus.NewDesc("quayside_http_responses_broken_total",
			"Responses that ended early, and whose connection was therefore cut.", labels, nil),
		passed: prometheus.NewDesc("quayside_tls_passthrough_connections_total",
			"Connections that were to be handed on undecrypted and have ended, by what became of them.", append(labels[:3:3], "result"), nil),
		panics: prometheus.NewDesc("quayside_http_panics_total", "Requests that made the proxy panic.", nil, nil),
	}
}

type collector struct {
	dispatcher                                              *Dispatcher
	requests, duration, waited, own, broken, passed, panics *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.requests, c.duration, c.waited, c.own, c.broken, c.passed, c.panics} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	m := c.dispatcher.metrics
	if r := c.dispatcher.routing.Load(); r != nil {
		m.prune(r.table)
	}
	ch <- prometheus.MustNewConstMetric(c.panics, prometheus.CounterValue, float64(m.panics.Load()))
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.series {
		c.collect(ch, s, k.ingress.Namespace, k.ingress.Name, k.service.Name)
	}
}

func (c *collector) collect(ch chan<- prometheus.Metric, s *series, labels ...string) {
	for class := range s.classes {
		codes := s.classes[class].Load()
		if codes == nil {
			continue
		}
		for i := range codes {
			if n := codes[i].Load(); n > 0 {
				code := strconv.Itoa(100*(class+1) + i)
				ch <- prometheus.MustNewConstMetric(c.requests, prometheus.CounterValue, float64(n), append(labels[:3:3], code)...)
			}
		}
	}
	for i, result := range s.passed.labels() {
		if n := s.passed[i].Load(); n > 0 {
			ch <- prometheus.MustNewConstMetric(c.passed, prometheus.CounterValue, float64(n), append(labels[:3:3], result)...)
		}
	}
	took := s.took.metric(c.duration, time.Millisecond, labels)
	if took == nil {
		return
	}
	ch <- took
	for _, m := range []prometheus.Metric{s.waited.metric(c.waited, time.Millisecond, labels), s.own.metric(c.own, ownUnit, labels)} {
		if m != nil {
			ch <- m
		}
	}
	ch <- prometheus.MustNewConstMetric(c.broken, prometheus.CounterValue, float64(s.broken.Load()), labels...)
}
