package route

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/filter"
)

// compileHosts compiles every host that a changed Ingress names or named.
func (w *compiler) compileHosts() {
	if len(w.hosts) == 0 {
		return
	}
	w.alsoBelow()
	w.alsoAliases()
	edit := w.t.hosts.edit()
	for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
		before := edit.get([]byte(hostKey(name)))
		if name == "" {
			before = w.t.catchAll
		}
		h := w.compileHost(name)
		before.releaseBackends(w)
		w.t.state.guarded += h.countGuard() - before.countGuard()
		w.t.state.decoding += h.countDecoding() - before.countDecoding()
		w.t.state.ciphered += h.countCiphers() - before.countCiphers()
		w.t.state.offering += h.countHTTP2() - before.countHTTP2()
		w.t.state.passing += h.countPassed() - before.countPassed()
		switch {
		case name == "":
			w.t.catchAll = h
		case h == nil:
			edit.unset([]byte(hostKey(name)))
		default:
			edit.set(h)
		}
	}
	w.t.hosts = edit.hostMap
}

// compileHost returns a host from all its parts, or nil if there is none.
func (w *compiler) compileHost(name string) *host {
	b := hostBuilder{w: w}
	parts := w.withRules(b.first(w.parts(name)))
	options := w.t.state.options
	if options.FirstNamespace {
		parts = b.owned(parts)
	}
	b.tls = w.tlsAbove(name, parts) || slices.ContainsFunc(parts, func(c *part) bool { return c.tls })
	b.clients = clientsOf(parts)
	b.tellOfClients(parts)
	b.takeDenied(parts)
	b.tellOfHost(parts)
	b.passed = b.passthrough(parts)
	http2 := b.http2Of(parts)
	b.takePaths(parts)
	b.appRoot()
	b.canaries(parts)
	for _, c := range parts {
		b.certificate(c)
	}
	for _, c := range parts {
		b.defaultBackend(c)
	}
	b.noRule(parts)
	key := snapshot.Key{Name: name}
	slices.SortFunc(b.problems, snapshot.Problem.Compare)
	if before, _ := w.conflicts.get(key); !slices.Equal(before, b.problems) {
		setProblems(w.conflicts, key, b.problems)
		w.problemsChanged = true
	}
	if len(parts) == 0 {
		return nil
	}
	routes, patterns := b.routes, []pattern(nil)
	regex := slices.ContainsFunc(b.routes, (*Route).anyPattern)
	if regex {
		routes, patterns = patternsOf(b.routes)
	}
	h := newHost(name, routes)
	h.regex, h.patterns = regex, patterns
	h.fallback, h.certs, h.sealed = b.fallback, b.certificates(), b.sealed
	h.ciphers, h.http2, h.backends = ciphersOf(parts), http2, b.backends
	h.passages = b.passages(parts)
	h.tls = strings.HasPrefix(name, "*") && w.hasTLS(name, "") // no other host is asked
	h.clients, h.passed = clientCAsOf(h.allRoutes()), b.passed
	if options.FirstNamespace || options.NoCatchAll {
		h.keepers, h.keepsWildcards = keepers(parts), options.FirstNamespace
	}
	return h
}

// parts returns those of a host, the oldest Ingress first. Those of
// namespaces that are terminating count only where there are no others: their
// pods are deleted before their Ingresses (KEP-5080).
func (w *compiler) parts(name string) []*part {
	users, _ := w.byHost.get(snapshot.Key{Name: name})
	parts := make([]*part, 0, users.Len())
	for key := range users.All() {
		u, _ := w.units.get(key)
		parts = append(parts, u.find(name))
	}
	if staying := slices.DeleteFunc(slices.Clone(parts), func(c *part) bool { return c.unit.leaving }); len(staying) > 0 {
		parts = staying
	}
	slices.SortFunc(parts, func(a, b *part) int { return a.unit.compareAge(b.unit) })
	return parts
}

// A hostBuilder gathers the parts of one host, oldest first: who comes first
// has the path, the default backend, the certificate.
type hostBuilder struct {
	w         *compiler
	routes    []*Route
	backends  []int // acquired for this host
	fallback  *Route
	certs     []*keyPair // of different kinds
	sealed    bool
	tls       bool                       // some Ingress has a tls entry for the host, or for the wildcard host above
	clients   map[string]*sharedClients  // by namespace, see clientsOf
	denied    map[string]*deniedTogether // the same, see takeDenied
	passed    *Passthrough               // nil: connections are decrypted
	certOwner *part                      // of the oldest of them
	fallOwner *part
	problems  []snapshot.Problem
}

// takePaths takes the paths of all parts, in the order of a pathSet.
func (b *hostBuilder) takePaths(parts []*part) {
	var all []partRoute
	for _, c := range parts {
		for _, r := range c.routes {
			all = append(all, partRoute{r, c})
		}
	}
	slices.SortStableFunc(all, func(a, b partRoute) int {
		return cmp.Or(comparePlace(a.route, b.route), compareConditions(a.route, b.route))
	})
	for _, r := range all {
		n := len(b.routes)
		if n == 0 || comparePlace(b.routes[n-1], r.route) != 0 {
			b.routes = append(b.routes, b.onHost(r.route))
			continue
		}
		last := b.routes[n-1]
		for last.otherwise != nil {
			last = last.otherwise
		}
		if last.when == nil { // nothing is left for those that come after it
			b.lost(r.part, DuplicatePath, fmt.Sprintf("path %s (%s)", r.route.Host+r.route.Path, r.route.Type), last.Owner)
			continue
		}
		last.otherwise = b.onHost(r.route) // last has a condition, so it is this host's own copy
	}
}

type partRoute struct {
	route *Route
	part  *part
}

// certificate takes the oldest certificate of each kind, and seals the host if any part
// does. Those of another namespace than the first do not count, whatever their kind: who
// may show one to some of the clients speaks for the host.
func (b *hostBuilder) certificate(c *part) {
	b.sealed = b.sealed || c.sealed
	for _, pair := range c.pairs {
		if b.certOwner == nil {
			b.certOwner = c
		}
		switch first := withKind(b.certs, pair.kind()); {
		case first == pair:
		case first == nil && pair.key.Namespace == b.certOwner.unit.ref.Namespace:
			b.certs = append(b.certs, pair)
		case c.implied:
		default:
			b.lost(c, DuplicateTLS, "the certificate of host "+c.host, b.certOwner.unit.ref)
		}
	}
}

// certificates are those of the host in the order of preference.
func (b *hostBuilder) certificates() []*tls.Certificate {
	if len(b.certs) == 0 {
		return nil
	}
	slices.SortFunc(b.certs, func(a, b *keyPair) int { return cmp.Compare(a.kind(), b.kind()) })
	list := make([]*tls.Certificate, len(b.certs))
	for i, pair := range b.certs {
		list[i] = pair.cert
	}
	return list
}

// defaultBackend takes the oldest default backend, that of an Ingress without
// rules before all others. Losing is a fault only between two of those.
func (b *hostBuilder) defaultBackend(c *part) {
	switch {
	case c.fallback == nil:
	case b.fallOwner == nil || b.fallOwner.weak && !c.weak:
		b.fallOwner, b.fallback = c, b.onHost(c.fallback)
	case !c.weak:
		b.lost(c, DuplicateDefault, "the default backend of all hosts", b.fallOwner.unit.ref)
	}
}

// compareConditions puts routes with conditions before one without.
func compareConditions(a, b *Route) int {
	switch {
	case (a.when == nil) == (b.when == nil):
		return 0
	case a.when != nil:
		return -1
	}
	return 1
}

// onHost returns r as it is on this host, and a copy if that may change.
func (b *hostBuilder) onHost(r *Route) *Route {
	redirect := r.want == redirectAlways || r.want == redirectIfTLS && b.tls
	strict := b.tls && r.hsts != ""
	clients := b.clients[r.Owner.Namespace]
	asks := clients != nil && sharesClients(r)
	denied := b.denied[r.Owner.Namespace]
	denies := denied != nil && sharesDenied(r)
	undecrypted := r.Undecrypted || b.passed != nil && r.Backend >= 0
	if !redirect && !strict && r.when == nil && !asks && !denies && undecrypted == r.Undecrypted {
		return r
	}
	n := *r
	if asks {
		n.ask(clients)
	}
	if denies {
		n.deny(denied.list)
	}
	n.RedirectTLS, n.Undecrypted = redirect, undecrypted
	if strict {
		n.HSTS = r.hsts
	}
	return &n
}

// lost reports to the owner of c which object has what it wants.
func (b *hostBuilder) lost(c *part, reason, what string, winner snapshot.Ref) {
	message := fmt.Sprintf("%s is taken by %s %s, which comes first by age and name; rename one or remove it", what, winner.Kind, winner.Key)
	if winner == c.unit.ref {
		message = what + " appears twice in this " + winner.Kind + "; the first counts"
	}
	b.told(c, reason, message)
}

// told reports something to the owner of c.
func (b *hostBuilder) told(c *part, reason, message string) {
	if c.borrowed {
		return
	}
	b.problems = append(b.problems, snapshot.Problem{Object: c.unit.ref, Reason: reason, Message: message})
}

// anyRoute is one of the routes of c, which all have what its Ingress asks, or nil.
func (c *part) anyRoute() *Route {
	if len(c.routes) > 0 {
		return c.routes[0]
	}
	return c.fallback
}

// isChallenge reports whether r is for challenges of ACME, which come without TLS, from
// strangers.
func (r *Route) isChallenge() bool {
	_, challenge := cutPrefix([]byte(r.match), acmePath)
	return challenge
}

// guard is change where with adds a guard.
func (r *Route) guard(with func(*filter.Settings)) {
	r.change(with)
	r.guarded = true
}

// change gives r, which is a copy, filters of its own, with something else in them.
func (r *Route) change(with func(*filter.Settings)) {
	f := filter.Settings{}
	if r.Filters != nil {
		f = *r.Filters
	}
	with(&f)
	r.Filters = &f
}
