package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// SharedHost is a host that several namespaces have a part of. Each may be right; that
// somebody else answers for a path of his host is for its owner to know.
type SharedHost struct {
	Host string `json:"host"`
	// Owner is the namespace that named the host first, by its Ingress.
	Owner   string `json:"owner"`
	Ingress string `json:"ingress"`
	// Foreign are the other namespaces, and the paths that they serve.
	Foreign []ForeignPaths `json:"foreign"`
}

// ForeignPaths are those that a namespace serves of a host of another.
type ForeignPaths struct {
	Namespace string   `json:"namespace"`
	Paths     []string `json:"paths"` // "/login (Exact)"
}

// sharedHosts are the hosts of the inputs' routes that more than one namespace serves, in
// the order of their names. Rules without host are everybody's.
func sharedHosts(s Inputs) (list []SharedHost) {
	if s.Routes == nil {
		return nil
	}
	var routes []*route.Route // of one host
	add := func() {
		if len(routes) > 0 && slices.ContainsFunc(routes, func(r *route.Route) bool { return r.Owner.Namespace != routes[0].Owner.Namespace }) {
			list = append(list, sharedHost(s.Cluster, routes))
		}
		routes = routes[:0]
	}
	for r := range s.Routes.Routes() {
		if len(routes) > 0 && routes[0].Host != r.Host {
			add()
		}
		if r.Host != "" && !r.NoRule {
			routes = append(routes, r)
		}
	}
	add()
	return list
}

func sharedHost(c *snapshot.Cluster, routes []*route.Route) SharedHost {
	first := slices.MinFunc(routes, func(a, b *route.Route) int { return compareAge(c, a.Owner.Key, b.Owner.Key) }).Owner.Key
	out := SharedHost{Host: routes[0].Host, Owner: first.Namespace, Ingress: first.String()}
	paths := map[string][]string{}
	for _, r := range routes {
		what := "default backend"
		if r.Path != "" {
			what = fmt.Sprintf("%s (%s)", r.Path, r.Type)
		}
		if of := r.Owner.Namespace; of != first.Namespace {
			paths[of] = append(paths[of], what)
		}
	}
	for namespace, list := range paths {
		out.Foreign = append(out.Foreign, ForeignPaths{namespace, list})
	}
	slices.SortFunc(out.Foreign, func(a, b ForeignPaths) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}

// compareAge orders Ingresses as the routes do, the oldest first.
func compareAge(c *snapshot.Cluster, a, b snapshot.Key) int {
	left, _ := c.Ingresses.Get(a)
	right, _ := c.Ingresses.Get(b)
	if left == nil || right == nil { // it has just gone
		return a.Compare(b)
	}
	return cmp.Or(left.CreationTimestamp.Compare(right.CreationTimestamp.Time), a.Compare(b))
}

func (h SharedHost) lines(as *wide) (lines [][]string) {
	host, owner := h.Host, fmt.Sprintf("%s (Ingress %s)", h.Owner, h.Ingress)
	for _, f := range h.Foreign {
		lines = append(lines, []string{host, owner, f.Namespace + ": " + names(f.Paths, as.most(3))})
		host, owner = "", ""
	}
	return lines
}
