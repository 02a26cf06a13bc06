package bgp

import "github.com/prometheus/client_golang/prometheus"

// metrics reads the sessions only on a scrape.
type metrics struct {
	of                                      *Speaker
	up, announced                           *prometheus.Desc
	sent, received, notified, notifications *prometheus.Desc
	flaps, unexpected                       *prometheus.Desc
}

func newMetrics(of *Speaker) *metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("quayside_bgp_"+name, help, labels, nil)
	}
	return &metrics{
		of:            of,
		up:            desc("session_up", "1 while the session is Established.", "peer"),
		announced:     desc("announced_prefixes", "Prefixes that the peer was told.", "peer"),
		sent:          desc("updates_sent_total", "UPDATE messages sent.", "peer"),
		received:      desc("updates_received_total", "UPDATE messages received, all dropped.", "peer"),
		notified:      desc("notifications_received_total", "NOTIFICATION messages received.", "peer"),
		notifications: desc("notifications_sent_total", "NOTIFICATION messages sent.", "peer"),
		flaps:         desc("session_flaps_total", "Ends of an Established session that nobody here asked for.", "peer"),
		unexpected:    desc("connections_refused_total", "Connections to the listener that no session expected."),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.up, m.announced, m.sent, m.received, m.notified, m.notifications, m.flaps, m.unexpected} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(m.unexpected, prometheus.CounterValue, float64(m.of.unexpected.Load()))
	for _, s := range *m.of.sessions.Load() {
		emit := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, t, v, s.name)
		}
		state := s.state.Load()
		up := 0.0
		if state.State == established {
			up = 1
		}
		emit(m.up, prometheus.GaugeValue, up)
		emit(m.announced, prometheus.GaugeValue, float64(state.Announced))
		emit(m.sent, prometheus.CounterValue, float64(s.counts.sent.Load()))
		emit(m.received, prometheus.CounterValue, float64(s.counts.received.Load()))
		emit(m.notified, prometheus.CounterValue, float64(s.counts.notified.Load()))
		emit(m.notifications, prometheus.CounterValue, float64(s.counts.notifications.Load()))
		emit(m.flaps, prometheus.CounterValue, float64(s.counts.flaps.Load()))
	}
}
