package route

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/filter"
)

// appRoot sends those elsewhere who ask for "/" on the host where an Ingress says so, whether it
// has a rule for that or not: ingress-nginx says it of the host. Whoever has such a rule in another
// namespace keeps it.
func (b *hostBuilder) appRoot() {
	of := b.routeWithRoot()
	if of == nil {
		return
	}
	n, root := *of, b.routeOfRoot()
	switch patterns := slices.ContainsFunc(b.routes, (*Route).anyPattern); {
	case root == nil:
	case root.Owner == of.Owner && !patterns: // its filters do it
		return
	case root.Owner.Namespace != of.Owner.Namespace:
		return
	default:
		n = *root
	}
	n.Path, n.match, n.Type, n.pattern, n.when, n.otherwise = "/", "/", networkingv1.PathTypeExact, nil, nil, nil
	n.change(func(f *filter.Settings) { f.AppRoot, f.Rewrite, f.AddSlash = of.Filters.AppRoot, nil, false })
	at, taken := slices.BinarySearchFunc(b.routes, &n, comparePlace)
	if taken {
		b.routes[at] = &n
	} else {
		b.routes = slices.Insert(b.routes, at, &n)
	}
}

// routeWithRoot returns a route whose Ingress says where "/" leads, or nil. Of several that with
// the longest path comes first in nginx.
func (b *hostBuilder) routeWithRoot() (found *Route) {
	for _, r := range b.routes {
		if r.Filters == nil || r.Filters.AppRoot == nil {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(len(r.Path), len(found.Path)), strings.Compare(r.Path, found.Path)) > 0 {
			found = r
		}
	}
	return found
}

// routeOfRoot returns the route that a request for "/" comes to, or nil.
func (b *hostBuilder) routeOfRoot() (found *Route) {
	for _, r := range b.routes {
		switch {
		case r.match == "/" && r.Type == networkingv1.PathTypeExact:
			return r
		case found == nil && (r.match == "/" || r.pattern != nil && r.pattern.MatchString("/")):
			found = r
		}
	}
	return found
}
