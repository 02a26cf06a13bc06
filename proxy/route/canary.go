package route

import (
	"fmt"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
)

// holds decides as ingress-nginx does: the header, then the cookie, then the lot.
func (c *canaryOptions) holds(r *exchange.Request) bool {
	if c.header != "" {
		if value := r.Header.Get(c.header); value != nil {
			switch {
			case c.value != "":
				if string(value) == c.value {
					return true
				}
			case c.pattern != nil:
				if c.pattern.Match(value) {
					return true
				}
			case string(value) == "always":
				return true
			case string(value) == "never":
				return false
			}
		}
	}
	if c.cookie != "" {
		switch string(r.Header.Cookie(c.cookie)) {
		case "always":
			return true
		case "never":
			return false
		}
	}
	return r.Random[0]%uint64(c.total) < uint64(c.weight)
}

// canaries puts each canary before the route that it is for. It takes nothing from
// that route but the backend, so guards and all else stay; and it must be of the
// same namespace, or anybody could draw off the requests of others.
func (b *hostBuilder) canaries(parts []*part) {
	for _, c := range parts {
		for _, alternative := range c.canaries {
			b.canary(c, alternative)
		}
	}
}

func (b *hostBuilder) canary(c *part, alternative *Route) {
	place := alternative.Host + alternative.Path
	for i, main := range b.routes {
		if !standsFor(alternative, main) {
			continue
		}
		switch {
		case main.Owner.Namespace != c.unit.ref.Namespace:
			b.told(c, CanaryUnused, fmt.Sprintf("path %s is of another namespace, so this canary gets none of its requests", place))
		case main.conditional():
			b.told(c, CanaryUnused, fmt.Sprintf("path %s has a canary already; only the oldest counts", place))
		case main.Closed != "" || alternative.Closed != "":
			// Either is told of what closes it. Requests go where they would without.
		default:
			n, terms := *main, *main.Terms
			terms.Owner = alternative.Owner
			n.Terms, n.Service, n.Backend, n.Split = &terms, alternative.Service, alternative.Backend, alternative.Split
			n.when, n.otherwise = alternative.when, main
			b.canarySessions(&n, main)
			b.routes[i] = &n
		}
		return
	}
	b.told(c, CanaryUnused, fmt.Sprintf("no other Ingress has path %s (%s), so this canary gets no requests; give it the host, path and pathType of the Ingress that it is to stand in for", place, alternative.Type))
}

// Main returns the route that a canary takes its share of, or nil if r is none.
func (r *Route) Main() *Route {
	switch r.when.(type) {
	case *canaryOptions, *staying:
		return r.otherwise
	}
	return nil
}

// Scripted returns whose snippets r has: a canary's are those of the Ingress that it is of.
func (r *Route) Scripted() snapshot.Ref {
	if main := r.Main(); main != nil {
		return main.Owner
	}
	return r.Owner
}

// standsFor reports whether a canary is for the place of main. Of a pattern the text
// counts, letter by letter: the canary need not say that its path is one.
func standsFor(canary, main *Route) bool {
	return comparePlace(main, canary) == 0 || main.pattern != nil && main.Path == canary.Path && main.Type == canary.Type
}

// canarySessions has clients stay where they have a session, as in ingress-nginx:
// whoever has one with main keeps it, and so does who has one with the canary n, which
// makes the same cookies as main unless affinity-canary-behavior is legacy.
func (b *hostBuilder) canarySessions(n, main *Route) {
	lot, ok := n.when.(*canaryOptions)
	if !ok || main.Backend < 0 || n.Backend < 0 {
		return
	}
	of, to := b.w.t.Backends[main.Backend], b.w.t.Backends[n.Backend]
	if !lot.forgets && of.Policy.Cookie != to.Policy.Cookie {
		to.Policy.Cookie = of.Policy.Cookie
		n.Backend = b.w.acquire(to)
		b.backends = append(b.backends, n.Backend)
	}
	stay := staying{main: b.w.sessionsOf(of), canary: b.w.sessionsOf(to), lot: lot}
	if stay.main != (balance.Sessions{}) || stay.canary != (balance.Sessions{}) {
		n.when = &stay
	}
}

// sessionsOf returns the sessions that a backend makes.
func (w *compiler) sessionsOf(b Backend) balance.Sessions {
	svc, ok := b.In(w.c)
	if !ok {
		return balance.Sessions{}
	}
	return balance.SessionsOf(svc, b.Port, b.Policy, w.t.state.options.CookieKey)
}

// staying is the condition of a canary where clients have sessions.
type staying struct {
	main, canary balance.Sessions
	lot          *canaryOptions // decides for all who have none
}

func (s *staying) holds(r *exchange.Request) bool {
	switch {
	case s.main.Have(r):
		return false
	case s.canary.Have(r):
		return true
	}
	return s.lot.holds(r)
}

// releaseBackends gives back what h, which may be nil, has acquired.
func (h *host) releaseBackends(w *compiler) {
	if h == nil {
		return
	}
	for _, b := range h.backends {
		w.release(b)
	}
}
