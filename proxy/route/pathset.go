package route

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/exchange"
)

// A pathSet finds the best route of one host for a path. It is a sorted list in
// which each entry knows the entry to try if it does not match itself, which is
// always one that stands before it. Sorted means element by element, so that all
// paths below a Prefix directly follow it. So the longest Prefix of a path is
// the last entry that does not come after it, or one of those it leads to.
//
// A lookup reads one stretch of memory instead of following a pointer for each
// element, which is what counts with ten thousand hosts.
type pathSet struct {
	text    []byte // the paths of all entries in their order, without the slash at their end
	entries []pathEntry
}

// pathEntry is small on purpose: its path ends where the next one begins.
type pathEntry struct {
	route *Route
	start uint32 // in text
	link  uint32 // the kind, whether there are conditions, and above them one plus the entry to try next
}

// pathKind is what an entry matches. Entries of one path stand in this order,
// so that the last is tried first.
type pathKind uint32

const (
	below     pathKind = iota // the path and everything below it
	withSlash                 // exactly the path with a slash at its end
	bare                      // exactly the path

	kindMask    = 3
	conditional = 4
	linkShift   = 3
)

func (e *pathEntry) kind() pathKind { return pathKind(e.link & kindMask) }

// otherwise is the entry to try if e does not match, or -1.
func (e *pathEntry) otherwise() int { return int(e.link>>linkShift) - 1 }

// placed is a route and where it stands in a pathSet.
type placed struct {
	path  string // without the slash at its end
	kind  pathKind
	route *Route
}

// placeOf places r under a path.
func placeOf(path string, r *Route) placed {
	short, slash := strings.CutSuffix(path, "/")
	switch {
	case r.Type != networkingv1.PathTypeExact:
		return placed{short, below, r}
	case slash:
		return placed{short, withSlash, r}
	}
	return placed{short, bare, r}
}

// places are routes where they belong.
func places(routes []*Route) []placed {
	list := make([]placed, len(routes))
	for i, r := range routes {
		list[i] = placeOf(r.match, r)
	}
	return list
}

// compare is the order of the entries of a pathSet.
func (a placed) compare(b placed) int {
	return cmp.Or(comparePaths([]byte(a.path), []byte(b.path)), cmp.Compare(a.kind, b.kind))
}

// comparePlace orders routes as the entries of a pathSet.
func comparePlace(a, b *Route) int { return placeOf(a.match, a).compare(placeOf(b.match, b)) }

// fill makes p from routes that are in order and all different. It appends to
// what p holds, so the caller may bring the memory.
func (p *pathSet) fill(places []placed) {
	var open []int // entries of kind below that enclose the present one
	for at, place := range places {
		path, kind := place.path, place.kind
		for len(open) > 0 && !isBelow([]byte(path), p.path(open[len(open)-1])) {
			open = open[:len(open)-1]
		}
		otherwise := -1
		if at > 0 && string(p.path(at-1)) == path {
			otherwise = at - 1
		} else if len(open) > 0 {
			otherwise = open[len(open)-1]
		}
		if kind == below {
			open = append(open, at)
		}
		link := uint32(otherwise+1)<<linkShift | uint32(kind)
		if place.route.conditional() {
			link |= conditional
		}
		p.entries = append(p.entries, pathEntry{place.route, uint32(len(p.text)), link})
		p.text = append(p.text, path...)
	}
}

func (p *pathSet) path(i int) []byte {
	end := len(p.text)
	if i+1 < len(p.entries) {
		end = int(p.entries[i+1].start)
	}
	return p.text[p.entries[i].start:end]
}

// match returns the route of a normalised path: Exact if there is one, else the
// longest Prefix, else nil. Routes whose conditions req does not meet are not there.
func (p *pathSet) match(path []byte, req *exchange.Request) *Route {
	if len(path) == 0 || path[0] != '/' {
		return nil
	}
	exactly := bare
	if path[len(path)-1] == '/' {
		path, exactly = path[:len(path)-1], withSlash
	}
	low, high := 0, len(p.entries)
	for low < high { // the first entry that comes after path
		if mid := int(uint(low+high) / 2); comparePaths(p.path(mid), path) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for i := low - 1; i >= 0; i = p.entries[i].otherwise() {
		e := &p.entries[i]
		if kind := e.kind(); kind == below && isBelow(path, p.path(i)) || kind == exactly && string(p.path(i)) == string(path) {
			if e.link&conditional == 0 {
				return e.route
			}
			if r := e.route.choose(req); r != nil {
				return r
			}
		}
	}
	return nil
}

// comparePaths compares element by element: a slash comes before any character.
func comparePaths(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			switch {
			case a[i] == '/':
				return -1
			case b[i] == '/':
				return 1
			}
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// isBelow reports whether path is prefix or has all of its elements and more.
func isBelow(path, prefix []byte) bool {
	return len(path) >= len(prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/') &&
		string(path[:len(prefix)]) == string(prefix)
}

// routes returns every route, ordered by path.
func (p *pathSet) routes() []*Route {
	all := make([]*Route, 0, len(p.entries))
	for _, e := range p.entries {
		for r := e.route; r != nil; r = r.otherwise {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *Route) int { return strings.Compare(a.match, b.match) })
	return all
}
