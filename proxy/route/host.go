package route

import (
	"cmp"
	"crypto/tls"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// A host is everything that is said about one host of a rule. It is immutable.
type host struct {
	name     string // "", "shop.example.com" or "*.example.com"
	root     node
	fallback *Route // default backend, if no rule of any host matches
	sealed   bool   // requests never fall through to less specific hosts
	cert     *tls.Certificate
}

// key is the name under which hostMap finds the host.
func hostKey(name string) string { return strings.TrimPrefix(name, "*") }

// A node is one element of a path; the root stands for "/".
type node struct {
	prefix   *Route // this element and everything below
	exact    *Route // exactly this path, without a slash at its end
	slash    *Route // exactly this path, with a slash at its end
	children []child
}

// child elements are sorted. A map would be no faster for the few there are, and
// much larger for the ten thousand hosts that have them.
type child struct {
	element string
	node    *node
}

// match returns the route of the longest matching path, Exact before Prefix.
func (n *node) match(path []byte) *Route {
	if len(path) == 0 || path[0] != '/' {
		return nil
	}
	best := n.prefix
	for rest := path[1:]; ; {
		if len(rest) == 0 {
			return cmp.Or(n.slash, best)
		}
		end := 0
		for end < len(rest) && rest[end] != '/' {
			end++
		}
		if n = n.child(rest[:end]); n == nil {
			return best
		}
		best = cmp.Or(n.prefix, best)
		if end == len(rest) {
			return cmp.Or(n.exact, best)
		}
		rest = rest[end+1:]
	}
}

func (n *node) child(element []byte) *node {
	low, high := 0, len(n.children)
	for low < high {
		mid := int(uint(low+high) / 2)
		switch c := &n.children[mid]; {
		case c.element == string(element):
			return c.node
		case c.element < string(element):
			low = mid + 1
		default:
			high = mid
		}
	}
	return nil
}

// add places r and returns nil, or the route that stands there already.
func (n *node) add(r *Route) *Route {
	path := r.match[1:]
	place := &n.slash
	if r.Type != networkingv1.PathTypeExact {
		path = strings.TrimSuffix(path, "/")
		place = &n.prefix
	}
	for path != "" {
		element, rest, more := strings.Cut(path, "/")
		n = n.grow(element)
		switch {
		case r.Type != networkingv1.PathTypeExact:
			place = &n.prefix
		case more:
			place = &n.slash
		default:
			place = &n.exact
		}
		path = rest
	}
	if *place != nil {
		return *place
	}
	*place = r
	return nil
}

func (n *node) grow(element string) *node {
	i, ok := slices.BinarySearchFunc(n.children, element, func(c child, e string) int { return strings.Compare(c.element, e) })
	if !ok {
		n.children = slices.Insert(n.children, i, child{element, &node{}})
	}
	return n.children[i].node
}

// routes returns every route, ordered by path, the default backend last.
func (h *host) routes() []*Route {
	var all []*Route
	var walk func(n *node)
	walk = func(n *node) {
		for _, r := range []*Route{n.exact, n.slash, n.prefix} {
			if r != nil {
				all = append(all, r)
			}
		}
		for _, c := range n.children {
			walk(c.node)
		}
	}
	walk(&h.root)
	slices.SortStableFunc(all, func(a, b *Route) int { return strings.Compare(a.match, b.match) })
	if h.fallback != nil {
		all = append(all, h.fallback)
	}
	return all
}
