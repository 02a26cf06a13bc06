package dispatch

import (
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// NginxNames has the metrics of requests shown once more, under the names and labels
// of ingress-nginx, so that its dashboards work. That is one series for each path,
// method, status and limit, as there.
type NginxNames struct {
	// Class, Namespace and Pod are the labels of this controller.
	Class, Namespace, Pod string
}

// Desc describes a metric of ingress-nginx.
func (n NginxNames) Desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("nginx_ingress_controller_"+name, help, labels, prometheus.Labels{
		"controller_class": n.Class, "controller_namespace": n.Namespace, "controller_pod": n.Pod,
	})
}

// nginxMetrics are the requests as ingress-nginx counts them. Its routes are guarded by
// the lock of metrics.
type nginxMetrics struct {
	requests *prometheus.Desc
	measures [numMeasures]*prometheus.Desc
	times    []uint64 // limits of durations, in ns
	sizes    []uint64 // and of sizes, in bytes
	unrouted *nginxRoute
	routes   map[nginxKey]*nginxRoute
}

// nginxKey are the labels of a path.
type nginxKey struct{ namespace, ingress, service, host, path string }

// What is measured of a request, in the order of nginxMetrics.measures.
const (
	nginxTook = iota
	nginxConnect
	nginxHeader
	nginxAnswer
	nginxReceived
	nginxSent
	numMeasures
)

// nginxAny is the host of rules without one.
const nginxAny = "_"

func newNginxMetrics(of NginxNames) *nginxMetrics {
	labels := []string{"namespace", "ingress", "service", "canary", "host", "path", "method", "status"}
	m := &nginxMetrics{
		requests: of.Desc("requests", "Requests answered, in the words of ingress-nginx.", labels...),
		measures: [numMeasures]*prometheus.Desc{
			of.Desc("request_duration_seconds", "Time from the end of the request's head to the end of the response.", labels...),
			of.Desc("connect_duration_seconds", "Time until there was a connection to the endpoint asked last; 0 if there had been one.", labels...),
			of.Desc("header_duration_seconds", "Time from the choice of the endpoint asked last to the head of its answer.", labels...),
			of.Desc("response_duration_seconds", "Time from the choice of the endpoint asked last to the last that came of its answer.", labels...),
			of.Desc("request_size", "Bytes of the head and the body of the request.", labels...),
			of.Desc("response_size", "Bytes of the body of the response.", labels...),
		},
		unrouted: &nginxRoute{},
		routes:   map[nginxKey]*nginxRoute{},
	}
	for _, ms := range []uint64{5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000} {
		m.times = append(m.times, ms*uint64(time.Millisecond))
	}
	for size := uint64(10); size <= 10_000_000; size *= 10 {
		m.sizes = append(m.sizes, size)
	}
	m.routes[nginxKey{host: nginxAny}] = m.unrouted
	return m
}

func nginxKeyOf(r *route.Route) nginxKey {
	k := nginxKey{r.Owner.Namespace, r.Owner.Name, r.Service.Name, r.Host, r.Path}
	if k.host == "" {
		k.host = nginxAny
	}
	if k.path == "" {
		k.path = "/"
	}
	return k
}

func (m *nginxMetrics) of(r *route.Route) *nginxRoute {
	k := nginxKeyOf(r)
	if m.routes[k] == nil {
		m.routes[k] = &nginxRoute{}
	}
	return m.routes[k]
}

// prune forgets what no route of t feeds any more.
func (m *nginxMetrics) prune(t *route.Table) {
	live := map[nginxKey]bool{}
	for r := range t.Unordered() {
		live[nginxKeyOf(r)] = true
	}
	maps.DeleteFunc(m.routes, func(k nginxKey, r *nginxRoute) bool { return !live[k] && r != m.unrouted })
}

// nginxRoute counts the requests of one path, whose labels are looked up when it is
// first used. What a request finds there is made by the first of its kind.
type nginxRoute struct {
	own      nginxCells
	canaries atomic.Pointer[nginxCanary]
}

// nginxCells are by method, class and status.
type nginxCells [otherMethod + 1]atomic.Pointer[[numClasses]atomic.Pointer[[100]atomic.Pointer[nginxCell]]]

// nginxCanary counts the requests that went to another backend of a path, which are as
// few as the Ingress names.
type nginxCanary struct {
	name  string
	cells nginxCells
	next  *nginxCanary
}

// nginxCell counts the requests with the same labels.
type nginxCell struct {
	requests atomic.Uint64
	measures [numMeasures]tally
}

// tally is a histogram whose limits somebody else knows.
type tally struct {
	buckets [12]atomic.Uint64
	sum     atomic.Uint64
}

func (t *tally) observe(v uint64, limits []uint64) {
	i := 0
	for i < len(limits) && v > limits[i] {
		i++
	}
	t.buckets[i].Add(1)
	t.sum.Add(v)
}

// observe counts a request.
func (m *nginxMetrics) observe(r *nginxRoute, ex *exchange.Exchange, place *accesslog.Place, status int, took time.Duration) {
	cells := &r.own
	if place.Split && ex.Upstream.Name != "" && ex.Upstream.Name != place.Upstream {
		cells = r.canary(ex.Upstream.Name)
	}
	c := made(&made(&made(&cells[methodOf(ex.Request.Method)])[status/100-1])[status%100])
	c.requests.Add(1)
	c.measures[nginxTook].observe(uint64(max(took, 0)), m.times)
	c.measures[nginxReceived].observe(uint64(max(ex.Request.Size, 0)), m.sizes)
	c.measures[nginxSent].observe(uint64(max(ex.Response.Sent, 0)), m.sizes)
	if len(ex.Upstream.Tries) == 0 {
		return
	}
	last := ex.Upstream.Last()
	c.measures[nginxConnect].observe(uint64(max(last.Connect, 0)), m.times)
	if last.Status > 0 {
		c.measures[nginxHeader].observe(uint64(max(last.Header, 0)), m.times)
		c.measures[nginxAnswer].observe(uint64(max(last.Took, 0)), m.times)
	}
}

// canary returns the cells of another backend.
func (r *nginxRoute) canary(name string) *nginxCells {
	for {
		first := r.canaries.Load()
		for c := first; c != nil; c = c.next {
			if c.name == name {
				return &c.cells
			}
		}
		added := &nginxCanary{name: name, next: first}
		if r.canaries.CompareAndSwap(first, added) {
			return &added.cells
		}
	}
}

func (m *nginxMetrics) describe(ch chan<- *prometheus.Desc) {
	ch <- m.requests
	for _, d := range m.measures {
		ch <- d
	}
}

func (m *nginxMetrics) collect(ch chan<- prometheus.Metric) {
	for k, r := range m.routes {
		m.collectCells(ch, &r.own, k.namespace, k.ingress, k.service, "", k.host, k.path)
		for c := r.canaries.Load(); c != nil; c = c.next {
			m.collectCells(ch, &c.cells, k.namespace, k.ingress, k.service, c.name, k.host, k.path)
		}
	}
}

func (m *nginxMetrics) collectCells(ch chan<- prometheus.Metric, cells *nginxCells, labels ...string) {
	names := methodNames()
	for method := range cells {
		classes := cells[method].Load()
		if classes == nil {
			continue
		}
		for class := range classes {
			codes := classes[class].Load()
			if codes == nil {
				continue
			}
			for code := range codes {
				if c := codes[code].Load(); c != nil {
					m.collectCell(ch, c, append(labels[:len(labels):len(labels)], names[method], strconv.Itoa(100*(class+1)+code)))
				}
			}
		}
	}
}

func (m *nginxMetrics) collectCell(ch chan<- prometheus.Metric, c *nginxCell, labels []string) {
	ch <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(c.requests.Load()), labels...)
	for i := range c.measures {
		limits, unit := m.times, float64(time.Second)
		if i >= nginxReceived {
			limits, unit = m.sizes, 1
		}
		var total uint64
		buckets := map[float64]uint64{}
		for j, limit := range limits {
			total += c.measures[i].buckets[j].Load()
			buckets[float64(limit)/unit] = total
		}
		total += c.measures[i].buckets[len(limits)].Load()
		if total > 0 {
			ch <- prometheus.MustNewConstHistogram(m.measures[i], total, float64(c.measures[i].sum.Load())/unit, buckets, labels...)
		}
	}
}
