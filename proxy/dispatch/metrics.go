package dispatch

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// series counts the requests of one Service behind one Ingress. A request costs
// some atomic additions; names and labels are looked up when a route is first
// used.
type series struct {
	classes                [numClasses]atomic.Pointer[[100]atomic.Uint64] // by status
	took                   histogram                                      // the whole
	waited                 histogram                                      // for endpoints
	own                    histogram                                      // in the proxy, in ownUnit
	linked, headed, answer histogram                                      // until the endpoint was connected, its head had come, and all of it
	received, sent         atomic.Uint64                                  // bytes
	broken                 atomic.Uint64
	passed                 passedOn
}

type seriesKey struct{ ingress, service snapshot.Key }

// made returns what a pointer leads to, which is made when it is first asked for.
func made[T any](p *atomic.Pointer[T]) *T {
	if v := p.Load(); v != nil {
		return v
	}
	p.CompareAndSwap(nil, new(T))
	return p.Load()
}

// numClasses is how many first digits a status may have.
const numClasses = 5

// statusOf is the status that a request is counted by.
func statusOf(status int) int {
	if status < 100 || status > 599 {
		return 500
	}
	return status
}

func (s *series) observe(status int, d time.Duration) {
	made(&s.classes[status/100-1])[status%100].Add(1)
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
	own, last := took-u.Waited, u.Last()
	if last.Took > last.Header {
		own = u.Began.Sub(ex.Request.Received) // the rest was the pace of two others
	}
	s.own.observe(own, ownUnit)
	if last.Connect > 0 {
		s.linked.observe(last.Connect, time.Millisecond)
	}
	if last.Status > 0 {
		s.headed.observe(last.Header, time.Millisecond)
		s.answer.observe(last.Took, time.Millisecond)
	}
}

// weigh adds the bytes of a request and its response.
func (s *series) weigh(ex *exchange.Exchange) {
	s.received.Add(uint64(max(ex.Request.Size, 0)))
	if n := ex.Response.Sent; n > 0 {
		s.sent.Add(uint64(n))
	}
}

func (s *series) broke() { s.broken.Add(1) }

// byClass counts requests by the first digit of their status.
type byClass [numClasses]atomic.Uint64

func (b *byClass) count(status int) { b[status/100-1].Add(1) }

// otherMethod is the index of the methods that are not among the known.
const otherMethod = 9

// methodNames are the methods that are counted by their names: a client may make up
// others.
func methodNames() [otherMethod + 1]string {
	return [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", other}
}

// methodOf is the index of a method in methodNames.
func methodOf(name []byte) int {
	switch string(name) {
	case "GET":
		return 0
	case "HEAD":
		return 1
	case "POST":
		return 2
	case "PUT":
		return 3
	case "PATCH":
		return 4
	case "DELETE":
		return 5
	case "OPTIONS":
		return 6
	case "CONNECT":
		return 7
	case "TRACE":
		return 8
	}
	return otherMethod
}

// other is the label of what has none of its own.
const other = "other"

// metrics are those of one Dispatcher.
type metrics struct {
	unrouted *series // requests that no route is for
	panics   atomic.Uint64
	methods  [otherMethod + 1]byClass
	most     int           // how many hosts are counted by name; 0: none is
	nameless byClass       // requests for others, and those that no route is for
	nginx    *nginxMetrics // nil: none

	mu     sync.Mutex
	series map[seriesKey]*series
	hosts  map[string]*byClass
	pruned weak.Pointer[route.Table] // all that is counted is of this one
	full   weak.Pointer[route.Table] // this one has more hosts than are counted
}

func newMetrics(hosts int, names *NginxNames) *metrics {
	m := &metrics{unrouted: &series{}, most: hosts, series: map[seriesKey]*series{}, hosts: map[string]*byClass{}}
	m.series[seriesKey{}] = m.unrouted
	if names != nil {
		m.nginx = newNginxMetrics(*names)
	}
	return m
}

func (m *metrics) get(k seriesKey) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[k]
	if s == nil {
		s = &series{}
		m.series[k] = s
		m.pruned = weak.Pointer[route.Table]{} // it may be of an older table
	}
	return s
}

// host returns what counts the requests for a host as a rule of t spells it, or nil if
// none are counted by host.
func (m *metrics) host(name string, t *route.Table) *byClass {
	if m.most <= 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.hosts[name]
	if h != nil {
		return h
	}
	if name != "" && len(m.hosts) >= m.most && m.full != weak.Make(t) {
		m.pruneLocked(t) // some may be of an older table
		m.full = weak.Make(t)
	}
	if name == "" || len(m.hosts) >= m.most {
		return &m.nameless
	}
	h = &byClass{}
	m.hosts[name] = h
	m.pruned = weak.Pointer[route.Table]{}
	return h
}

// asNginx returns what counts the requests of a route as ingress-nginx does, or nil.
func (m *metrics) asNginx(r *route.Route) *nginxRoute {
	if m.nginx == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = weak.Pointer[route.Table]{}
	return m.nginx.of(r)
}

// prune forgets what no route of t feeds any more. It looks at the routes of a Table
// once, unless there is something new to count.
func (m *metrics) prune(t *route.Table) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruneLocked(t)
}

func (m *metrics) pruneLocked(t *route.Table) {
	at := weak.Make(t)
	if m.pruned == at {
		return
	}
	live, hosts := map[seriesKey]bool{{}: true}, map[string]bool{}
	for r := range t.Unordered() {
		live[seriesKey{r.Owner.Key, r.Service}] = true
		hosts[r.Host] = true
	}
	maps.DeleteFunc(m.series, func(k seriesKey, _ *series) bool { return !live[k] })
	maps.DeleteFunc(m.hosts, func(name string, _ *byClass) bool { return !hosts[name] })
	if m.nginx != nil {
		m.nginx.prune(t)
	}
	m.pruned = at
}
