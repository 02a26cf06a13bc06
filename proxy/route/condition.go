package route

import (
	"bytes"
	"regexp"

	"quayside.io/proxy/exchange"
)

// A condition is one thing that a route asks of a request beyond its host and
// path. It is immutable.
type condition interface {
	// holds reports whether the request has what is asked. It allocates nothing.
	holds(r *exchange.Request) bool
}

// hasMethod is a method, as sent.
type hasMethod string

func (m hasMethod) holds(r *exchange.Request) bool { return string(r.Method) == string(m) }

// hasHeader is the value of a header.
type hasHeader struct{ name, value string }

func (h hasHeader) holds(r *exchange.Request) bool { return string(r.Header.Get(h.name)) == h.value }

// headerMatches is a pattern for the value of a header.
type headerMatches struct {
	name    string
	pattern *regexp.Regexp
}

func (h headerMatches) holds(r *exchange.Request) bool {
	value := r.Header.Get(h.name)
	return value != nil && h.pattern.Match(value)
}

// hasQuery is the value of a parameter of the query, as sent. The first one of
// that name counts.
type hasQuery struct{ name, value string }

func (q hasQuery) holds(r *exchange.Request) bool {
	_, query, _ := bytes.Cut(r.Target, []byte{'?'})
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if name, value, _ := bytes.Cut(pair, []byte{'='}); string(name) == q.name {
			return string(value) == q.value
		}
	}
	return false
}

// all asks for every one of several.
type all []condition

func (c all) holds(r *exchange.Request) bool {
	for _, one := range c {
		if !one.holds(r) {
			return false
		}
	}
	return true
}

// choose returns the first route for the place of r whose condition holds, or nil.
func (r *Route) choose(req *exchange.Request) *Route {
	for ; r != nil; r = r.otherwise {
		if r.when == nil || r.when.holds(req) {
			return r
		}
	}
	return nil
}

// conditional reports whether it takes a request to know which route is meant.
func (r *Route) conditional() bool { return r.when != nil || r.otherwise != nil }

// Weighted is one of several backends that share the requests of a route.
type Weighted struct {
	Backend int // index into Table.Backends, or -1: its share gets a 503
	Weight  uint32
}

// Lead returns the index of the backend for one request, or -1. random decides
// where the route leads to several; equal numbers lead to the same.
func (r *Route) Lead(random uint64) int {
	if len(r.Split) == 0 {
		return r.Backend
	}
	var total uint64
	for _, w := range r.Split {
		total += uint64(w.Weight)
	}
	if total == 0 {
		return -1
	}
	at := random % total
	for _, w := range r.Split {
		if at < uint64(w.Weight) {
			return w.Backend
		}
		at -= uint64(w.Weight)
	}
	return -1
}
