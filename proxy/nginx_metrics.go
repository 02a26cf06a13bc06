package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/dispatch"
)

// nginxMetrics are what dashboards and alerts of ingress-nginx ask for beside requests.
type nginxMetrics struct {
	proxy                            *Proxy
	of                               dispatch.NginxNames
	connections, reload, at, expires *prometheus.Desc
}

func newNginxMetrics(p *Proxy, of dispatch.NginxNames) *nginxMetrics {
	return &nginxMetrics{
		proxy: p, of: of,
		connections: of.Desc("nginx_process_connections",
			"Open connections of clients: active (all), waiting (for their next request) and writing (the others); none is counted as reading.", "state"),
		reload: of.Desc("config_last_reload_successful", "1 once there are routes: what is wrong with one takes none of the others along."),
		at:     of.Desc("config_last_reload_successful_timestamp_seconds", "When routes last changed, in seconds since 1970."),
		// Here its labels are not those of its other metrics.
		expires: prometheus.NewDesc("nginx_ingress_controller_ssl_expire_time_seconds",
			"When the certificate of a host expires, in seconds since 1970.", []string{"namespace", "class", "host"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *nginxMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connections, m.reload, m.at, m.expires} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *nginxMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	active, waiting := m.proxy.server.Connections(), m.proxy.server.Waiting()
	for state, n := range map[string]int{"active": active, "waiting": waiting, "writing": max(active-waiting, 0), "reading": 0} {
		gauge(m.connections, float64(n), state)
	}
	t := m.proxy.table.Load()
	if t == nil {
		gauge(m.reload, 0)
		return
	}
	gauge(m.reload, 1)
	gauge(m.at, float64(m.proxy.changed.Load())/float64(time.Second))
	for host, end := range expiries(t) {
		gauge(m.expires, float64(end.Unix()), m.of.Namespace, m.of.Class, host)
	}
}
