package route

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/filter"
)

// A unit is one compiled object of a source. It is immutable once built.
type unit struct {
	ref      snapshot.Ref
	created  time.Time
	parts    []*part          // one per host, in the order of the object
	byHost   map[string]*part // nil where they are few
	objects  []snapshot.Key   // what backends and options name, by keyOf
	secrets  []snapshot.Key   // with certificates
	backends []int            // one per route that leads somewhere
	fallback *Route           // of what no rule is for; of defaultService only
	problems []snapshot.Problem
	http2    claim          // whether it is offered for its hosts
	leaving  bool           // its namespace is terminating: it yields to all that stay
	renames  bool           // some of its parts are further names of others
	ofHost   *serverSnippet // its own; nil: it has none that others may have
	borrows  bool           // it has none at all, and so that of others
}

// A part is what one unit says about one host.
type part struct {
	unit     *unit
	host     string
	routes   []*Route
	canaries []*Route   // that take a share of the route for the same place
	passages []*Route   // see passages
	fallback *Route     // its default backend
	weak     bool       // fallback yields to that of an Ingress without rules
	sealed   bool       // see host.sealed
	rank     rank       // by what it names the host
	named    bool       // a rule has the host, with or without paths
	tls      bool       // a tls entry is about this host
	aliasOf  *part      // unless rank is byRule
	borrowed bool       // see withRules: what is wrong with it is told of another host
	pairs    []*keyPair // the certificates it brings, of different kinds
	implied  bool       // those are not asked for by name
	passed   *Passthrough
	ciphers  []uint16 // towards clients; nil: it says nothing
	noRule   *Route   // what requests come to that no path is for; nil: nothing
	lent     *lent    // the server-snippet that it has from another; nil: none
}

// rank is by what a part names its host: one counts only where there is none that
// comes before it.
type rank int

// The ranks, in order.
const (
	byRule  rank = iota
	byAlias      // server-alias
	byWWW        // from-to-www-redirect
)

// compareAge is the order in which units win what two of them want.
func (u *unit) compareAge(o *unit) int {
	return cmp.Or(u.created.Compare(o.created), u.ref.Key.Compare(o.ref.Key), cmp.Compare(u.ref.Kind, o.ref.Kind))
}

// dependsOn notes that the unit is to be compiled again when an object changes.
func (u *unit) dependsOn(r snapshot.Ref) {
	if key := keyOf(r); !slices.Contains(u.objects, key) {
		u.objects = append(u.objects, key)
	}
}

// fewParts are looked through quicker than a map, which would be larger than they are.
const fewParts = 8

// find returns the part for a host, or nil.
func (u *unit) find(host string) *part {
	if u.byHost != nil {
		return u.byHost[host]
	}
	for _, c := range u.parts {
		if c.host == host {
			return c
		}
	}
	return nil
}

// part returns that for a host, made if it is new.
func (u *unit) part(host string) *part {
	c := u.find(host)
	if c != nil {
		return c
	}
	c = &part{unit: u, host: host}
	u.parts = append(u.parts, c)
	switch {
	case u.byHost != nil:
		u.byHost[host] = c
	case len(u.parts) > fewParts:
		u.byHost = make(map[string]*part, 2*len(u.parts))
		for _, c := range u.parts {
			u.byHost[c.host] = c
		}
	}
	return c
}

// some returns one of its routes, or nil.
func (c *part) some() *Route {
	if len(c.routes) > 0 {
		return c.routes[0]
	}
	return cmp.Or(c.fallback, c.noRule)
}

// A unitBuilder compiles one Ingress.
type unitBuilder struct {
	*unit
	ingress  *networkingv1.Ingress
	w        *compiler
	class    ingressclass.Class
	settings *settings
	terms    *Terms           // of all its routes
	filters  *filter.Settings // of routes without a rewrite; nil: none
	slashed  *filter.Settings // see addingSlash; nil: not made yet
	last     resolved

	borrowers map[loan]*unitBuilder // see on
	lent      *lent                 // of one of those; nil: it is none
	quiet     bool                  // another is told what is wrong
}

// resolved is what backend found last: most paths of an Ingress lead to one Service.
type resolved struct {
	of      networkingv1.IngressServiceBackend
	backend Backend
	fault   finding
}

func (w *compiler) compileUnit(ing *networkingv1.Ingress, k ingressclass.Class) *unit {
	b := unitBuilder{
		unit:    &unit{ref: refTo(snapshot.Ingress, snapshot.KeyOf(ing)), created: ing.CreationTimestamp.Time},
		ingress: ing, w: w, class: k,
	}
	w.settings = *w.t.state.global.settingsOf(k)
	b.settings = &w.settings
	for _, f := range parseOptions(w.options, ing.Annotations, b.settings, &b) {
		b.problem(f)
	}
	if b.settings.dropped {
		return b.unit
	}
	b.stays()
	if b.settings.passthrough.on && w.t.state.options.NoPassthrough {
		b.problem(b.settings.close("ssl-passthrough", "asks for what --enable-ssl-passthrough=false forbids"))
	}
	b.filters, b.terms = b.settings.filtersOf(), b.termsOf()
	b.hostSnippet()
	b.rules()
	if !b.settings.canary.on { // else there is nothing more to it, as in ingress-nginx
		b.defaultBackend()
		b.bothNames()
		b.passages()
		b.noRules()
		b.otherNames()
		b.passthrough()
		b.ciphers()
		b.http2 = b.settings.http2
		for i := range ing.Spec.TLS {
			b.tls(&ing.Spec.TLS[i])
		}
		b.siblingTLS()
		b.aliasTLS()
	}
	slices.SortFunc(b.problems, snapshot.Problem.Compare)
	b.problems = slices.Compact(b.problems)
	return b.unit
}

// termsOf returns what the options of the Ingress say of all its routes.
func (b *unitBuilder) termsOf() *Terms {
	s := b.settings
	return &Terms{
		Owner: b.ref, RedirectCode: s.tls.redirectCode, RedirectPort: s.tls.port, Unlogged: s.unlogged, GRPC: s.protocol.grpc,
		Forwarding: s.forwardingOf(), Errors: b.errorPage(),
		want: s.tls.want(), hsts: s.tls.header, plain: s.tls.plain, nginx: b.class.Nginx,
		ofHost: s.ofHost,
	}
}

func (b *unitBuilder) problem(f finding) {
	if b.quiet {
		return
	}
	b.problems = append(b.problems, snapshot.Problem{
		Object: b.ref, Reason: f.reason, Message: f.message,
	})
}

func (b *unitBuilder) problemf(reason, format string, args ...any) {
	b.problem(finding{reason, fmt.Sprintf(format, args...)})
}

func (b *unitBuilder) rules() {
	for i := range b.ingress.Spec.Rules {
		rule := &b.ingress.Spec.Rules[i]
		if why := invalidHost(rule.Host); why != "" {
			b.problemf(InvalidHost, "host %q %s; the rule is left out", rule.Host, why)
			continue
		}
		c := b.part(rule.Host)
		c.named = true
		c.sealed = b.class.Nginx && !b.settings.canary.on
		d := b.on(c)
		if rule.HTTP == nil && b.class.Nginx {
			continue // there it yields to the path / of another; see defaultBackend, and noRules
		}
		if rule.HTTP == nil {
			// "The rule defaults to a http catch-all", says the API: everything
			// for the host goes to the default backend, if there is one.
			def := b.ingress.Spec.DefaultBackend
			if def == nil && b.sendsAway() {
				def = &networkingv1.IngressBackend{}
			}
			if def != nil {
				d.add(c, d.route(rule.Host, "/", "/", networkingv1.PathTypePrefix, def))
			}
			continue
		}
		for j := range rule.HTTP.Paths {
			d.path(c, &rule.HTTP.Paths[j])
		}
	}
}

func (b *unitBuilder) path(c *part, p *networkingv1.HTTPIngressPath) {
	pathType := networkingv1.PathTypeImplementationSpecific
	if p.PathType != nil {
		pathType = *p.PathType
	}
	switch pathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific:
	default:
		b.problemf(InvalidPath, "path %s has the unknown pathType %q and is left out; use Exact, Prefix or ImplementationSpecific", c.host+p.Path, pathType)
		return
	}
	path := p.Path
	if path == "" && pathType == networkingv1.PathTypeImplementationSpecific {
		path = "/"
	}
	if b.isPattern(path, pathType) {
		b.patternPath(c, path, pathType, &p.Backend)
		return
	}
	normal, ok := Normalize(nil, []byte(path))
	ok = ok && !strings.ContainsAny(path, "?#")
	if !ok && b.settings.canary.on && pathType != networkingv1.PathTypeExact && patternLike(path) {
		normal, ok = []byte(path), true // the Ingress that it is for may have it as a pattern
	}
	if !ok {
		b.problemf(InvalidPath, "path %q of host %q matches no request and is left out; a path begins with / and has no broken escape, no backslash and no query", p.Path, c.host)
		return
	}
	if !b.class.Nginx && !b.settings.canary.on && likelyPattern(path) {
		b.problemf(LiteralPath, "path %q of host %q is taken letter by letter; if it is a pattern, say %s", path, c.host, b.patternsBy(pathType))
	}
	r := b.route(c.host, path, string(normal), pathType, &p.Backend)
	if b.class.Nginx && pathType != networkingv1.PathTypeExact && r.match == path && strings.HasSuffix(path, "/") && path != "/" {
		r.Filters = b.addingSlash()
	}
	b.add(c, r)
}

// addingSlash returns the filters of paths that end in a slash. As nginx has it, who asks for one
// without that slash is sent to it, so that relative links of the page lead below.
func (b *unitBuilder) addingSlash() *filter.Settings {
	if b.slashed == nil {
		f := filter.Settings{}
		if b.filters != nil {
			f = *b.filters
		}
		f.AddSlash = true
		b.slashed = &f
	}
	return b.slashed
}

// add gives a part one more route, or one more canary.
func (b *unitBuilder) add(c *part, r *Route) {
	if b.settings.canary.on {
		options := b.settings.canary
		r.when = &options
		c.canaries = append(c.canaries, r)
		return
	}
	c.routes = append(c.routes, r)
}

// isPattern reports whether a path of that type is a pattern. In our own classes
// rewrite-target alone leaves a Prefix what the specification says it is.
func (b *unitBuilder) isPattern(path string, t networkingv1.PathType) bool {
	rewrites := b.settings.rewrites(path) && (b.class.Nginx || t == networkingv1.PathTypeImplementationSpecific)
	return t != networkingv1.PathTypeExact && !b.settings.canary.on && (b.settings.useRegex || rewrites)
}

// patternPath adds the route of a path that is a pattern. One that is refused
// closes all that it may have meant, in its own place, so that no request of it
// reaches another.
func (b *unitBuilder) patternPath(c *part, path string, pathType networkingv1.PathType, be *networkingv1.IngressBackend) {
	if !patternLike(path) {
		b.problemf(InvalidPath, "path %q of host %q is no pattern and is left out; it begins with / and has no control characters", path, c.host)
		return
	}
	re, err := pathPattern(path)
	if err == nil {
		r := b.route(c.host, path, path, pathType, be)
		r.pattern = re
		b.rewrite(r)
		c.routes = append(c.routes, r)
		return
	}
	why := "the pattern " + strconv.Quote(path[:min(len(path), 100)]) + " is refused; only RE2 is understood, without looking around and back, up to " + strconv.Itoa(filter.MaxPattern) + " bytes and " + strconv.Itoa(filter.MaxProgram) + " instructions"
	b.problemf(RouteClosed, "%s: every request that it may have meant gets a 503", why)
	kept := b.settings.closed
	b.settings.closed = cmp.Or(kept, why)
	r := b.route(c.host, path, path, pathType, be)
	b.settings.closed = kept
	r.pattern = regexp.MustCompile("(?i)^" + regexp.QuoteMeta(literalPrefix(path)))
	c.routes = append(c.routes, r)
}

// stays takes away what leads requests elsewhere where ingress-nginx does: an Ingress without rules
// serves all hosts that no other has, and they stay.
func (b *unitBuilder) stays() {
	if !b.class.Nginx || len(b.ingress.Spec.Rules) > 0 {
		return
	}
	for _, key := range []string{"app-root", "force-ssl-redirect", "permanent-redirect", "rewrite-target", "temporal-redirect"} {
		if value := annotation(b.ingress.Annotations, key); value != "" && value != "false" {
			b.problemf(InvalidAnnotation, "%s has no effect, since the Ingress has no rules; it would with one that has no host, and the path /", key)
		}
	}
	s := b.settings
	s.rewrite, s.tls.redirect, s.tls.force = nil, false, false
	s.filters.Redirect, s.filters.AppRoot = nil, nil
}

// rewrite gives a route the rewrite of its Ingress, if there is one.
func (b *unitBuilder) rewrite(r *Route) {
	if !b.settings.rewrites(cmp.Or(r.Path, "/")) {
		return
	}
	f := b.settings.filters
	f.Rewrite = &filter.Rewrite{Pattern: r.pattern, Target: b.settings.rewrite, Decode: b.class.Nginx}
	if r.pattern != nil && b.settings.isTarget(r.Path) { // then ingress-nginx rewrites what is below
		f.Rewrite.Pattern = patternOf(r.Path + "/")
	}
	r.Filters = &f
}

// bothNames redirects the host's other name, with www or without, unless somebody
// has rules for it.
func (b *unitBuilder) bothNames() {
	if !b.settings.wwwToo {
		return
	}
	for _, c := range slices.Clone(b.parts) {
		other, www := strings.CutPrefix(c.host, "www.")
		if !www {
			other = "www." + c.host
		}
		if c.host == "" || strings.HasPrefix(c.host, "*") || invalidHost(other) != "" || b.find(other) != nil || c.some() == nil {
			continue
		}
		r := *c.some()
		r.Host, r.Path, r.match, r.Type, r.pattern = other, "/", "/", networkingv1.PathTypePrefix, nil
		// Nothing of it goes to a backend, so that it need not have one.
		r.Backend, r.Split, r.Closed, r.Unread, r.Undecrypted = -1, nil, "", false, false
		r.Filters = b.w.t.state.global.beside() // nginx redirects by a server of its own
		r.Filters.CanonicalHost, r.Filters.RedirectCode = c.host, orElse(b.settings.tls.redirectCode, 308)
		d := b.part(other)
		d.rank, d.aliasOf, b.renames = byWWW, c, true
		d.routes = append(d.routes, &r)
	}
}

// defaultBackend places spec.defaultBackend. The specification gives it every
// request that matches no rule, so it stands behind the rules of the Ingress's
// own hosts and of all others. An Ingress without rules says that outright and
// wins over one that has some. In ingress-nginx it keeps to its own hosts.
func (b *unitBuilder) defaultBackend() {
	def := b.ingress.Spec.DefaultBackend
	if def == nil {
		if len(b.ingress.Spec.Rules) == 0 {
			b.problemf(EmptyIngress, "the Ingress has neither rules nor a default backend")
		}
		return
	}
	for _, c := range b.parts {
		c.fallback = b.on(c).route(c.host, "", "", "", def)
		c.weak = true
	}
	if len(b.ingress.Spec.Rules) == 0 || !b.class.Nginx {
		c := b.part("")
		c.weak = len(b.ingress.Spec.Rules) > 0
		if c.fallback == nil {
			c.fallback = b.on(c).route("", "", "", "", def)
		}
	}
}

// route builds the route to one backend. A route that cannot serve is closed;
// one whose guard is not understood is closed whatever its backend.
func (b *unitBuilder) route(host, path, match string, pathType networkingv1.PathType, be *networkingv1.IngressBackend) *Route {
	r := &Route{Terms: b.terms, Host: host, Path: path, match: match, Type: pathType, Backend: -1,
		Filters: b.filters, guarded: b.settings.guards(), Undecrypted: b.settings.passthrough.on}
	b.rewrite(r)
	backend, fault := b.backendAt(host, be)
	r.Service, r.Port = backend.Service, backend.Port.String()
	nowhere := fault.reason != "" && b.sendsAway()
	if fault.reason != "" && !nowhere {
		place, instead := "default backend", "get a 503"
		if path != "" {
			place = "path " + host + path
		}
		if by := b.replacing(fault); by != "" {
			nowhere, instead = true, "are answered by "+by
		}
		b.problemf(fault.reason, "%s: %s; its requests %s", place, fault.message, instead)
	}
	if nowhere {
		fault = finding{}
	}
	r.Closed = cmp.Or(b.settings.closed, fault.message)
	r.Unread = b.settings.closed != "" && !b.settings.shut && fault.message == ""
	if r.Closed == "" && !nowhere {
		r.Backend = b.w.acquire(backend)
		b.backends = append(b.backends, r.Backend)
	}
	if r.Closed == "" {
		r.Detours = b.detours()
	}
	return r
}
