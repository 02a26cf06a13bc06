package route

import (
	"slices"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// A backend may read a path more loosely than we do, see filter.AppendLoose. Requests are
// routed by what they say. But a guard that stands where such a backend would look must not
// be walked around, so hosts keep a second pathSet where it differs, in which every path is
// spelled loosely.

// loosely returns the pathSet of routes in their loose spelling, or nil if it is
// that of their own. Where two are the same in it, a guard comes first.
func loosely(routes []*Route) *pathSet {
	if !slices.ContainsFunc(routes, func(r *Route) bool { return filter.SpelledOddly([]byte(r.match)) }) {
		return nil
	}
	loose := make([]placed, len(routes))
	for i, r := range routes {
		loose[i] = placeOf(string(filter.AppendLoose(nil, []byte(r.match))), r)
	}
	slices.SortStableFunc(loose, func(a, b placed) int {
		if c := a.compare(b); c != 0 || a.route.guards() == b.route.guards() {
			return c
		} else if a.route.guards() {
			return -1
		}
		return 1
	})
	p := &pathSet{}
	p.fill(slices.CompactFunc(loose, func(a, b placed) bool { return a.compare(b) == 0 }))
	return p
}

// countGuard is 1 for a host that guards anything, 0 for any other, or none.
func (h *host) countGuard() int {
	if h == nil {
		return 0
	}
	if h.fallback != nil && h.fallback.guards() || slices.ContainsFunc(h.patterns, func(p pattern) bool { return p.route.guards() }) ||
		slices.ContainsFunc(h.entries, func(e pathEntry) bool { return e.route.guards() }) {
		return 1
	}
	return 0
}

// guards reports whether the route decides who may pass.
func (r *Route) guards() bool { return r.guarded }

// reading is one way to take the path of a request.
type reading struct {
	path    []byte // for Exact and Prefix paths, and patterns of our own classes
	pattern []byte // for those of adopted classes
	loose   bool   // path is spelled as in host.loose
}

// reread looks again at a request whose path is oddly spelled, and for which found
// is what it says letter by letter. Patterns of adopted classes meet it as nginx
// decodes it; but where found guards, it stays: a backend that does not decode sees
// what found keeps. guard is the guard that the path would meet if it were read
// loosely, where that is another. Only paths longer than any honest one cost an
// allocation.
func (t *Table) reread(name []byte, req *exchange.Request, found *Route) (_, guard *Route) {
	buf, _ := t.state.scratch.Get().(*[1024]byte) // what regexp reads does not stay on the stack
	defer t.state.scratch.Put(buf)
	if t.state.decoding > 0 && (found == nil || found.NoRule || !found.guards()) {
		if path := filter.AppendDecoded(buf[:0], req.Path); len(path) < len(req.Path) {
			found = t.nearest(name, reading{path: req.Path, pattern: path}, req)
		}
	}
	if t.state.guarded > 0 {
		path := filter.AppendLoose(buf[:0], req.Path)
		if r := t.nearest(name, reading{path, path, true}, req); r != nil && r.guards() && r != found {
			guard = r
		}
	}
	return found, guard
}

// countDecoding is 1 for a host with patterns of adopted classes, 0 for any other, or
// none.
func (h *host) countDecoding() int {
	if h != nil && slices.ContainsFunc(h.patterns, func(p pattern) bool { return p.route.nginx }) {
		return 1
	}
	return 0
}
