package l2

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/speaker/announce"
)

// metrics hands the hot path plain atomic counters and turns them into samples
// only when somebody collects.
type metrics struct {
	mu       sync.Mutex
	counters map[[2]string]*counters // by interface and family

	requests, replies, gratuitous, dropped, deaf *prometheus.Desc

	deafness map[string]bool // by interface, of those that are watched over
}

func newMetrics(to prometheus.Registerer) *metrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("quayside_l2_"+name+"_total", help, []string{"interface", "family"}, nil)
	}
	m := &metrics{
		counters:   map[[2]string]*counters{},
		requests:   desc("requests", "Questions received about addresses of this node."),
		replies:    desc("replies", "Answers sent."),
		gratuitous: desc("gratuitous", "Announcements sent unasked."),
		dropped:    desc("dropped", "Answers that could not be sent."),
		deaf:       prometheus.NewDesc("quayside_l2_deaf", "1 for an interface whose LAN has not answered for a second or more, 0 for one whose LAN answers.", []string{"interface"}, nil),
		deafness:   map[string]bool{},
	}
	if to != nil {
		to.MustRegister(m)
	}
	return m
}

// of returns the counters of one interface, which outlive its responders, but
// not the interface.
func (m *metrics) of(link, family string) *counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{link, family}
	if m.counters[key] == nil {
		m.counters[key] = &counters{}
	}
	return m.counters[key]
}

// keep forgets the counters of all other interfaces: those whose names come and
// go, as containers' do, would be shown for ever.
func (m *metrics) keep(links []announce.Interface) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.counters, func(key [2]string, _ *counters) bool {
		return !slices.ContainsFunc(links, func(i announce.Interface) bool { return i.Name == key[0] })
	})
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.replies, m.gratuitous, m.dropped, m.deaf} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, c := range m.counters {
		emit := func(d *prometheus.Desc, v uint64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), key[0], key[1])
		}
		emit(m.requests, c.requests.Load())
		emit(m.replies, c.replies.Load())
		emit(m.gratuitous, c.gratuitous.Load())
		emit(m.dropped, c.dropped.Load())
	}
	for name, deaf := range m.deafness {
		value := 0.0
		if deaf {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(m.deaf, prometheus.GaugeValue, value, name)
	}
}

// judged says of the interfaces that are watched over which are deaf.
func (m *metrics) judged(deafness map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deafness = deafness
}
