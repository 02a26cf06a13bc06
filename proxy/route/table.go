package route

import (
	"bytes"
	"crypto/tls"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// Backend is one port of a Service that a route leads to. It is comparable.
type Backend struct {
	Service snapshot.Key
	// Outside says that there is no such Service: its name is that of a host outside of the
	// cluster, or an address, and its namespace that of who named it.
	Outside bool
	Port    balance.PortRef
	// AnyNode ignores externalTrafficPolicy: Local; see balance.Options.
	AnyNode bool
	// ServiceAddress asks the Service's own address instead of its endpoints.
	ServiceAddress bool
	// Policy is how requests are spread over the endpoints.
	Policy balance.Policy
	// TLS is how they are spoken to, and HTTP2 whether over HTTP/2: by ALPN over TLS,
	// by prior knowledge else.
	TLS   UpstreamTLS
	HTTP2 bool
}

// In returns the Service as c has it, or who stands for what is outside.
func (b Backend) In(c *snapshot.Cluster) (*corev1.Service, bool) {
	if b.Outside {
		return balance.Outside(b.Service), true
	}
	return c.Services.Get(b.Service)
}

// Called is what people call it.
func (b Backend) Called() string {
	if b.Outside {
		return b.Service.Name
	}
	return "Service " + b.Service.String()
}

// Route is what happens to the requests that match one path of one rule, or
// none. It is immutable.
type Route struct {
	*Terms

	Host    string // as in the rule: "", "shop.example.com", "*.example.com"
	Path    string // as in the rule; empty for a default backend
	Type    networkingv1.PathType
	Service snapshot.Key // for metrics; set also where the Service is missing
	Port    string       // of it, as in the rule

	// Backend is the index into Table.Backends, or -1 if Closed, or if there is none
	// and somebody else answers: Errors, a redirect, or nobody, see NoRule. Where Split
	// says more, Lead chooses.
	Backend int
	Split   []Weighted
	// Detours are the backends that its script may lead to instead, or -1.
	Detours []int
	// Closed, if not empty, says why every request gets a 503.
	Closed string
	// Unread says that it is Closed for nothing but a Secret or ConfigMap that could
	// not be read: who may read it may find the route open.
	Unread bool
	// NoRule says that it is for what no rule of its host is for, in an adopted class: what
	// its filters let pass gets a 404 where Backend has no endpoint, or is -1.
	NoRule bool
	// RedirectTLS answers requests that did not come over TLS with a 308 to
	// https; see RedirectsToTLS.
	RedirectTLS bool
	// HSTS is the Strict-Transport-Security that responses over TLS have; empty:
	// none of ours.
	HSTS string
	// Filters are what the options of the Ingress ask of the filters; nil: nothing.
	Filters *filter.Settings

	// Undecrypted refuses requests over TLS that ends here: it is meant to end at the
	// backend, see Passthrough.
	Undecrypted bool

	match   string         // Path, normalised
	guarded bool           // its Ingress asks for a guard
	pattern *regexp.Regexp // of a path that asked to be one; nil: any other

	when      condition // nil: none
	otherwise *Route    // for the same place, where when does not hold
}

// Terms are what is the same for all routes of one Ingress, which share it: most memory
// of a large table is its routes.
type Terms struct {
	Owner snapshot.Ref // the Ingress, or what else asked for the routes
	// RedirectCode is another status than 308 for RedirectTLS, and RedirectPort says
	// that the address names the port.
	RedirectCode int
	RedirectPort bool
	// Unlogged keeps requests out of the access log.
	Unlogged bool
	// GRPC says that the backends were said to speak gRPC; HTTP/2 alone is no such word.
	GRPC bool
	// Forwarding is how requests are forwarded; nil: as all are.
	Forwarding *exchange.Forwarding
	// Errors is who answers instead of Backend where it cannot; nil: nobody.
	Errors *ErrorPage

	want  redirect
	hsts  string   // where the host has TLS
	plain []string // paths that RedirectTLS leaves alone, in adopted classes of rules that begin so, too
	nginx bool     // of an adopted class

	ofHost *serverSnippet
}

// acmePath is left out of redirects unless the operator says what is, because an
// HTTP-01 challenge arrives before there is a certificate.
const acmePath = "/.well-known/acme-challenge"

// RedirectsToTLS reports whether a request that did not come over TLS is to be sent there; path is
// the one (normalised) that the route was found by.
func (r *Route) RedirectsToTLS(path []byte) bool {
	if !r.RedirectTLS {
		return false
	}
	for _, plain := range r.plain {
		if r.nginx && !strings.HasPrefix(r.Path, plain) {
			continue
		}
		if rest, ok := cutPrefix(path, plain); ok && (len(rest) == 0 || rest[0] == '/') {
			return false
		}
	}
	return true
}

// CookiePath returns where a session cookie of the route holds that says nothing of that
// itself: as in ingress-nginx below the path of the rule, so that Ingresses of one host do
// not take each other's away. Empty: on the whole host, as where a path is a pattern, or
// has characters that a browser may compare otherwise than we do. A slash at its end is
// left out: the path without it belongs to the rule, too.
func (r *Route) CookiePath() string {
	if r.pattern != nil || strings.ContainsFunc(r.Path, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("%;,", c) }) {
		return ""
	}
	return strings.TrimRight(r.Path, "/")
}

// Pattern is what paths of the route match, where its path is a pattern; else nil.
func (r *Route) Pattern() *regexp.Regexp { return r.pattern }

// Foreseen is what Foresee returns.
type Foreseen = filter.Foreseen

// Foresee returns what r answers a request of which no fields are known, of which scripts have
// made something before.
func (r *Route) Foresee(req exchange.Request, at exchange.Scripted) Foreseen {
	return filter.Foresee(r.Filters, filter.Tools{Place: r.Place(), Normalize: Normalize}, req, at)
}

// Place is where its filters stand.
func (r *Route) Place() filter.Place {
	return filter.Place{
		Namespace: r.Owner.Namespace, Ingress: r.Owner.Name, Service: r.Service.Name, Port: r.Port, Host: r.Host, Path: r.Path,
		Exact: r.Type == networkingv1.PathTypeExact, Pattern: r.pattern,
	}
}

func cutPrefix(b []byte, prefix string) ([]byte, bool) {
	if len(b) < len(prefix) || string(b[:len(prefix)]) != prefix {
		return nil, false
	}
	return b[len(prefix):], true
}

// Table answers which route serves a request. It is immutable. Its zero value
// matches nothing.
type Table struct {
	// Version grows with each Table whose answers or Problems differ from those
	// of the Table before.
	Version uint64
	// Backends are what routes lead to. Entries without a Service are free. A
	// backend keeps its index from Table to Table, with rare exceptions, so an
	// index means nothing without its own Table.
	Backends []Backend
	// Problems are ordered.
	Problems []snapshot.Problem
	// Front is what holds for all requests; nil: nothing.
	Front *filter.Front
	// Unrouted holds for responses to what no route is for; nil: nothing.
	Unrouted *filter.Settings
	// TLS is how clients may speak it; nil: as all may.
	TLS *TLSPolicy
	// Connections are how they are kept; nil: as the defaults say.
	Connections *Connections
	// Collector is where spans go; nil: nowhere.
	Collector *Collector
	// NextWake is when a certificate expires and Compile has news although no
	// object changed. It is zero if none does.
	NextWake time.Time

	hosts    hostMap
	catchAll *host              // rules without host
	leftOver *Route             // what no rule is for; nil: that is a 404
	certs    []*tls.Certificate // for names that have none

	state state
}

// Match returns the route for a request, or nil for a 404. Of the request it reads
// the host, which may carry a port, upper case and a trailing dot, the normalised
// path, and where routes have conditions, what those ask for.
//
// guard is usually nil. It is set where a backend might take the path for one that
// another route guards: then the request must pass that route's guards too.
func (t *Table) Match(r *exchange.Request) (found, guard *Route) {
	var buf [maxHost]byte
	name := appendHost(buf[:0], r.AskedHost())
	found = t.nearest(name, reading{path: r.Path, pattern: r.Path}, r)
	if t.state.guarded+t.state.decoding > 0 && filter.SpelledOddly(r.Path) {
		return t.reread(name, r, found)
	}
	return found, nil
}

// nearest returns the route for a path among those of the hosts that a canonical
// name means, the most specific first. Most requests are answered by the first, so
// the others are not looked up before they are needed.
func (t *Table) nearest(name []byte, path reading, req *exchange.Request) *Route {
	var fallback *Route
	var kept *host // the most specific that keeps what its rules leave over
	for rank := exactly; rank <= anyHost; rank++ {
		h := t.host(name, rank)
		if h == nil {
			continue
		}
		set := &h.pathSet
		if path.loose && h.loose != nil {
			set = h.loose
		}
		r := set.match(path.path, req)
		if r == nil && h.regex {
			r = h.matchPattern(path, req)
		}
		if r != nil && kept.leaves(r, rank) {
			return r
		}
		if fallback == nil && h.fallback != nil && kept.leaves(h.fallback, rank) {
			fallback = h.fallback
		}
		if kept == nil && h.keepers != nil {
			kept = h
		}
		if h.sealed {
			break
		}
	}
	if fallback == nil {
		return t.leftOver
	}
	return fallback
}

// Certificate returns the first of Certificates, or nil.
func (t *Table) Certificate(serverName string) *tls.Certificate {
	if list := t.Certificates(serverName); len(list) > 0 {
		return list[0]
	}
	return nil
}

// Certificates returns the certificates for a server name: those of the exact host, of
// the wildcard host one label up, or the default, if there is one. A client is shown the
// first that it knows the kind of. There is none for a name that no Ingress has if such
// are rejected.
func (t *Table) Certificates(serverName string) []*tls.Certificate {
	var buf [maxHost]byte
	name := appendHost(buf[:0], serverName)
	known := false
	for rank := exactly; rank <= byWildcard; rank++ {
		h := t.host(name, rank)
		if h != nil && h.certs != nil {
			return h.certs
		}
		known = known || h != nil
	}
	if t.TLS != nil && t.TLS.RejectUnknown && !known {
		return nil
	}
	return t.certs
}

// The hosts that a canonical name may mean, the most specific first.
const (
	exactly = iota
	byWildcard
	anyHost
)

// host returns one of the hosts that a canonical name means, or nil. Wildcards are
// stored under what follows their asterisk, which begins with a dot as no name does.
func (t *Table) host(name []byte, rank int) *host {
	if rank == anyHost {
		return t.catchAll
	}
	if len(name) == 0 || name[0] == '.' {
		return nil
	}
	if rank == exactly {
		return t.hosts.get(name)
	}
	if i := bytes.IndexByte(name, '.'); i >= 0 {
		return t.hosts.get(name[i:])
	}
	return nil
}

// Routes yields every route, ordered by host, then path, default backends last.
func (t *Table) Routes() iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for _, h := range t.sortedHosts() {
			for _, r := range h.allRoutes() {
				if !yield(r) {
					return
				}
			}
		}
		if t.leftOver != nil {
			yield(t.leftOver)
		}
	}
}

// Unordered yields every route in no order, for whoever looks at all of them often.
func (t *Table) Unordered() iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for h := range t.hosts.all() {
			for _, r := range h.allRoutes() {
				if !yield(r) {
					return
				}
			}
		}
		if t.catchAll != nil {
			for _, r := range t.catchAll.allRoutes() {
				if !yield(r) {
					return
				}
			}
		}
		if t.leftOver != nil {
			yield(t.leftOver)
		}
	}
}

// AllCertificates yields those of every host that has any, ordered by host.
func (t *Table) AllCertificates() iter.Seq2[string, []*tls.Certificate] {
	return certificatesOf(slices.Values(t.sortedHosts()))
}

// UnorderedCertificates is AllCertificates in no order, for whoever looks at all of them
// often.
func (t *Table) UnorderedCertificates() iter.Seq2[string, []*tls.Certificate] {
	return certificatesOf(func(yield func(*host) bool) {
		for h := range t.hosts.all() {
			if !yield(h) {
				return
			}
		}
		if t.catchAll != nil {
			yield(t.catchAll)
		}
	})
}

// certificatesOf yields those of the hosts that have any.
func certificatesOf(hosts iter.Seq[*host]) iter.Seq2[string, []*tls.Certificate] {
	return func(yield func(string, []*tls.Certificate) bool) {
		for h := range hosts {
			if h.certs != nil && !yield(h.name, h.certs) {
				return
			}
		}
	}
}

func (t *Table) sortedHosts() []*host {
	all := slices.SortedFunc(t.hosts.all(), func(a, b *host) int { return strings.Compare(a.name, b.name) })
	if t.catchAll != nil {
		all = append(all, t.catchAll)
	}
	return all
}
