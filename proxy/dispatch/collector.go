package dispatch

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector returns the metrics of d.
func (d *Dispatcher) Collector() prometheus.Collector {
	labels := []string{"namespace", "ingress", "service"}
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append(labels[:3:3], more...), nil)
	}
	return &collector{
		dispatcher: d,
		requests:   desc("quayside_http_requests_total", "Requests answered. The labels are empty where no route matched.", "code"),
		duration:   desc("quayside_http_request_duration_seconds", "Time from the end of the request's head to the end of the response."),
		waited: desc("quayside_http_upstream_wait_seconds",
			"Time of a request in which endpoints were waited for: for connections, heads and pieces of bodies. Requests without a try are not in it."),
		own: desc("quayside_http_overhead_seconds",
			"Time of a request that was the proxy's own, filters that ask others included: all but the wait for endpoints or, where a body was streamed, what was before it."),
		linked:   desc("quayside_http_upstream_connect_seconds", "Time until there was a connection to the endpoint asked last, where it had to be made."),
		headed:   desc("quayside_http_upstream_header_seconds", "Time from the choice of the endpoint asked last to the head of its answer."),
		answer:   desc("quayside_http_upstream_response_seconds", "Time from the choice of the endpoint asked last to the last that came of its answer, which a slow client delays."),
		received: desc("quayside_http_request_bytes_total", "Bytes of the heads and bodies of requests, without framing."),
		sent:     desc("quayside_http_response_bytes_total", "Bytes of the bodies of responses. What upgraded connections carry is not in it."),
		broken:   desc("quayside_http_responses_broken_total", "Responses that ended early, and whose connection was therefore cut."),
		passed:   desc("quayside_tls_passthrough_connections_total", "Connections that were to be handed on undecrypted and have ended, by what became of them.", "result"),
		methods: prometheus.NewDesc("quayside_http_method_requests_total",
			"Requests answered by method (other: none of HTTP's own) and first digit of the status.", []string{"method", "code_class"}, nil),
		hosts: prometheus.NewDesc("quayside_http_host_requests_total",
			"Requests answered by host as rules spell it, with their wildcards, and first digit of the status. other: rules without host, no route, and hosts beyond as many as --metrics-hosts allows.",
			[]string{"host", "code_class"}, nil),
		panics: prometheus.NewDesc("quayside_http_panics_total", "Requests that made the proxy panic.", nil, nil),
	}
}

type collector struct {
	dispatcher *Dispatcher

	requests, duration, waited, own, linked, headed, answer, received, sent, broken, passed, methods, hosts, panics *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.requests, c.duration, c.waited, c.own, c.linked, c.headed, c.answer, c.received, c.sent, c.broken, c.passed, c.methods, c.hosts, c.panics,
	} {
		ch <- d
	}
	if n := c.dispatcher.metrics.nginx; n != nil {
		n.describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	m := c.dispatcher.metrics
	if r := c.dispatcher.routing.Load(); r != nil {
		m.prune(r.table)
	}
	ch <- prometheus.MustNewConstMetric(c.panics, prometheus.CounterValue, float64(m.panics.Load()))
	for i, name := range methodNames() {
		m.methods[i].collect(ch, c.methods, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.series {
		c.collect(ch, s, k.ingress.Namespace, k.ingress.Name, k.service.Name)
	}
	for name, h := range m.hosts {
		h.collect(ch, c.hosts, name)
	}
	m.nameless.collect(ch, c.hosts, other)
	if m.nginx != nil {
		m.nginx.collect(ch)
	}
}

// collect sends what b has counted, under a label before that of the class.
func (b *byClass) collect(ch chan<- prometheus.Metric, desc *prometheus.Desc, label string) {
	for i := range b {
		if n := b[i].Load(); n > 0 {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), label, strconv.Itoa(i+1)+"xx")
		}
	}
}

func (c *collector) collect(ch chan<- prometheus.Metric, s *series, labels ...string) {
	count := func(desc *prometheus.Desc, n uint64, more ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), append(labels[:3:3], more...)...)
	}
	for class := range s.classes {
		codes := s.classes[class].Load()
		if codes == nil {
			continue
		}
		for i := range codes {
			if n := codes[i].Load(); n > 0 {
				count(c.requests, n, strconv.Itoa(100*(class+1)+i))
			}
		}
	}
	for i, result := range s.passed.labels() {
		if n := s.passed[i].Load(); n > 0 {
			count(c.passed, n, result)
		}
	}
	took := s.took.metric(c.duration, time.Millisecond, every, labels)
	if took == nil {
		return
	}
	ch <- took
	for _, m := range []prometheus.Metric{
		s.waited.metric(c.waited, time.Millisecond, every, labels), s.own.metric(c.own, ownUnit, every, labels),
		s.linked.metric(c.linked, time.Millisecond, everyOther, labels), s.headed.metric(c.headed, time.Millisecond, everyOther, labels),
		s.answer.metric(c.answer, time.Millisecond, everyOther, labels),
	} {
		if m != nil {
			ch <- m
		}
	}
	count(c.received, s.received.Load())
	count(c.sent, s.sent.Load())
	count(c.broken, s.broken.Load())
}
