package proxy

import (
	"crypto/tls"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/route"
)

// metrics are those that only the component can know.
type metrics struct {
	proxy   *Proxy
	applied prometheus.Histogram
	expiry  *prometheus.Desc
	expires *prometheus.Desc
	routes  *prometheus.Desc
}

func newMetrics(p *Proxy) *metrics {
	return &metrics{
		proxy: p,
		applied: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quayside_config_apply_seconds", Help: "Time from a change seen to the plan in force.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14), ConstLabels: prometheus.Labels{"component": "proxy"},
		}),
		expiry: prometheus.NewDesc("quayside_tls_certificate_expiry_seconds",
			"Seconds until the certificate of a host expires, of several the first; negative afterwards.", []string{"host"}, nil),
		expires: prometheus.NewDesc("quayside_tls_certificate_not_after_timestamp_seconds",
			"When the certificate of a host expires, of several the first, in seconds since 1970.", []string{"host"}, nil),
		routes: prometheus.NewDesc("quayside_http_routes", "Routes in force.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.applied.Describe(ch)
	ch <- m.expiry
	ch <- m.expires
	ch <- m.routes
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.applied.Collect(ch)
	t := m.proxy.table.Load()
	if t == nil {
		return
	}
	n := 0
	for r := range t.Unordered() {
		if !r.NoRule {
			n++
		}
	}
	ch <- prometheus.MustNewConstMetric(m.routes, prometheus.GaugeValue, float64(n))
	for host, end := range expiries(t) {
		ch <- prometheus.MustNewConstMetric(m.expiry, prometheus.GaugeValue, time.Until(end).Seconds(), host)
		ch <- prometheus.MustNewConstMetric(m.expires, prometheus.GaugeValue, float64(end.Unix()), host)
	}
}

// expiries yields when the certificate of each host expires, in no order: there may be
// 10,000, and whoever gathers metrics puts them into an order of its own.
func expiries(t *route.Table) iter.Seq2[string, time.Time] {
	return func(yield func(string, time.Time) bool) {
		for host, list := range t.UnorderedCertificates() {
			if end := endOf(list); !end.IsZero() && !yield(host, end) {
				return
			}
		}
	}
}

// endOf is when the first of the certificates of a host expires; zero: nobody knows.
func endOf(list []*tls.Certificate) (end time.Time) {
	for _, c := range list {
		if c.Leaf != nil && (end.IsZero() || c.Leaf.NotAfter.Before(end)) {
			end = c.Leaf.NotAfter
		}
	}
	return end
}
