package route

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// noRules gives the hosts of an Ingress what requests come to there that no path is for. In
// ingress-nginx that is a location of the oldest Ingress of the host, with all that this one asks
// of its requests; who answers there is the default backend of the proxy, which knows nothing.
func (b *unitBuilder) noRules() {
	if !b.class.Nginx {
		return
	}
	for _, c := range b.parts {
		if c.named && c.host != "" && c.fallback == nil && !slices.ContainsFunc(c.routes, (*Route).takesAll) {
			c.noRule = b.on(c).noRule(c.host)
		}
	}
}

func (b *unitBuilder) noRule(host string) *Route {
	r := &Route{Terms: b.terms, Host: host, Backend: -1, NoRule: true, Filters: b.filters, guarded: b.settings.guards(),
		Closed: b.settings.closed, Undecrypted: b.settings.passthrough.on}
	b.rewrite(r)
	r.Unread = r.Closed != "" && !b.settings.shut
	if r.Closed != "" {
		return r
	}
	backend, index := b.sharedBackend()
	if index >= 0 {
		r.Service, r.Port, r.Backend = backend.Service, backend.Port.String(), index
	}
	if page := r.Errors; page != nil && page.Standby >= 0 { // it is for the backends of the Ingress
		terms := *r.Terms
		if terms.Errors, r.Terms = nil, &terms; index >= 0 {
			terms.Errors = &ErrorPage{Backend: index, Statuses: page.Statuses, Shared: true, Standby: -1}
		}
	}
	r.Detours = b.detours()
	return r
}

// takesAll reports whether no path is left over that r is not for.
func (r *Route) takesAll() bool { return r.match == "/" && r.Type != networkingv1.PathTypeExact }

// firstNoRule is the oldest of parts that says what becomes of requests that no path is for; nil:
// none does.
func firstNoRule(parts []*part) *part {
	for _, c := range parts {
		if c.noRule != nil {
			return c
		}
	}
	return nil
}

// noRule takes that of the oldest, where no default backend of an Ingress is asked.
func (b *hostBuilder) noRule(parts []*part) {
	first := firstNoRule(parts)
	if first == nil || b.fallback != nil || slices.ContainsFunc(b.routes, (*Route).takesAll) {
		return
	}
	n := *b.onHost(first.noRule)
	if slices.ContainsFunc(b.routes, (*Route).anyPattern) { // then nginx has all locations as patterns
		n.pattern = patternOf("/")
	}
	b.fallback = &n
}
