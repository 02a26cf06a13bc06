package route

import (
	"fmt"
	"reflect"
	"slices"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/filter"
)

// Passthrough is where the connections for a host are handed on to undecrypted. It is
// immutable.
type Passthrough struct {
	Owner   snapshot.Ref
	Service snapshot.Key
	// Backend is an index into Table.Backends. Closed, if not empty, says why the
	// connections are ended instead.
	Backend int
	Closed  string
	// Access says which clients may pass; nil: all.
	Access *filter.Access
	// ProxyHeader is the version of the PROXY header that is sent before all else; 0:
	// none.
	ProxyHeader int
}

// passthroughOptions are the keys of it.
type passthroughOptions struct {
	on     bool
	header int
}

func parsePassthrough(s *settings, value string) (err error) {
	s.passthrough.on, err = parseBool(value)
	return err
}

func parsePassthroughHeader(s *settings, value string) error {
	version := slices.Index([]string{"off", "v1", "v2"}, value)
	if version < 0 {
		return fmt.Errorf("%q is none of v1, v2, off", value)
	}
	s.passthrough.header = version
	return nil
}

// passthrough has connections for the hosts of the Ingress handed on, each to the
// backend of its path "/": a connection has no other path.
func (b *unitBuilder) passthrough() {
	if !b.settings.passthrough.on {
		return
	}
	for _, c := range b.parts {
		switch {
		case c.rank == byWWW || !c.answers():
		case c.host == "":
			b.problemf(PassthroughUnused, "ssl-passthrough has no effect on rules without host: clients ask for a server name, and for these there is none. Their requests over TLS get a 421")
		default:
			c.passed = b.passOn(c)
		}
	}
}

// answers reports whether a part has routes for all requests, canaries aside.
func (c *part) answers() bool { return len(c.routes) > 0 || c.fallback != nil }

func (b *unitBuilder) passOn(c *part) *Passthrough {
	p := &Passthrough{Owner: b.ref, Backend: -1, Access: b.settings.filters.Access, ProxyHeader: b.settings.passthrough.header}
	root := c.fallback
	if i := slices.IndexFunc(c.routes, func(r *Route) bool { return r.match == "/" }); i >= 0 {
		root = c.routes[i]
		if len(c.routes) > 1 {
			b.problemf(PassthroughUnused, "host %s: ssl-passthrough hands its connections on to the backend of the path /, so the others get requests without TLS only", c.host)
		}
	}
	switch {
	case root == nil:
		p.Closed = "ssl-passthrough hands connections on to the backend of the path /, which this Ingress does not have"
		b.problemf(PassthroughUnused, "host %s: %s; its connections are ended", c.host, p.Closed)
		return p
	case root.Closed != "": // told already
		p.Closed = root.Closed
	case root.Backend < 0:
		p.Closed = "there is no backend of the path /, and default-backend cannot answer connections that are not decrypted"
		b.problemf(PassthroughUnused, "host %s: %s; they are ended", c.host, p.Closed)
	case guardsRequests(b.settings.filters, p.Access):
		p.Closed = "the Ingress guards access in ways that need its requests, which nobody can read with ssl-passthrough"
		b.problemf(RouteClosed, "host %s: %s, so connections are ended; only lists of addresses can be kept", c.host, p.Closed)
	}
	p.Service = root.Service
	if p.Closed == "" {
		raw := b.w.t.Backends[root.Backend]
		raw.TLS, raw.HTTP2 = UpstreamTLS{}, false
		p.Backend = b.w.acquire(raw)
		b.backends = append(b.backends, p.Backend)
	}
	return p
}

// guardsRequests reports whether who may pass is decided by more than the addresses that the
// connections are kept from.
func guardsRequests(rest filter.Settings, kept *filter.Access) bool {
	if reflect.DeepEqual(rest.Access, kept) {
		rest.Access = nil
	}
	return rest.Guarded()
}

// passthrough returns where the connections for a host are handed on to, nil for
// nowhere: the oldest of its parts decides.
func (b *hostBuilder) passthrough(parts []*part) *Passthrough {
	i := slices.IndexFunc(parts, (*part).answers)
	if i < 0 {
		return nil
	}
	first := parts[i]
	p := first.passed
	for _, c := range parts[i+1:] {
		switch {
		case !c.answers() || (c.passed == nil) == (p == nil):
		case p == nil:
			b.told(c, PassthroughUnused, fmt.Sprintf("connections for host %s are not handed on, since %s %s, which comes first, does not ask for it; requests for these paths over TLS get a 421",
				c.host, first.unit.ref.Kind, first.unit.ref.Key))
		default:
			b.told(c, PassthroughUnused, fmt.Sprintf("connections for host %s are handed on by %s %s, which comes first, so paths of this %s get requests without TLS only",
				c.host, first.unit.ref.Kind, first.unit.ref.Key, c.unit.ref.Kind))
		}
	}
	if p == nil || p.Closed != "" || !guardedBeside(first, parts, p.Access) {
		return p
	}
	closed := *p
	closed.Closed = "another Ingress of this namespace guards paths of the host, which ssl-passthrough would lead around"
	b.told(first, RouteClosed, fmt.Sprintf("host %s: %s, so its connections are ended", first.host, closed.Closed))
	return &closed
}

// guardedBeside reports whether others of the namespace of first guard paths of the host by more
// than the addresses that may pass, which hold for the connections as well. Those of other
// namespaces cannot: nobody may shut what is older and not theirs.
func guardedBeside(first *part, parts []*part, kept *filter.Access) bool {
	guards := func(r *Route) bool {
		return r.guarded && (r.Closed != "" || r.Filters == nil || guardsRequests(*r.Filters, kept))
	}
	return slices.ContainsFunc(parts, func(c *part) bool {
		return c != first && c.unit.ref.Namespace == first.unit.ref.Namespace &&
			(c.fallback != nil && guards(c.fallback) || slices.ContainsFunc(c.routes, guards))
	})
}

// countPassed is 1 for a host whose connections are handed on, 0 for any other, or
// none.
func (h *host) countPassed() int {
	if h != nil && h.passed != nil {
		return 1
	}
	return 0
}

// PassesAny reports whether the connections for any host are handed on.
func (t *Table) PassesAny() bool { return t.state.passing > 0 }

// Passthrough returns where the connections for a server name are handed on to, or nil
// if they are decrypted: by the exact host or, if that has no rules, by the wildcard
// host one label up.
func (t *Table) Passthrough(serverName string) *Passthrough {
	if !t.PassesAny() {
		return nil
	}
	var buf [maxHost]byte
	name := appendHost(buf[:0], serverName)
	for rank := exactly; rank <= byWildcard; rank++ {
		h := t.host(name, rank)
		if h != nil && (h.passed != nil || h.sealed || len(h.allRoutes()) > 0) {
			return h.passed
		}
	}
	return nil
}
