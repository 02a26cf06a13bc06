package dispatch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/otlp"
	"quayside.io/proxy/route"
	"quayside.io/proxy/seclang"
)

// Forwarder answers exchanges by asking an upstream.
type Forwarder interface {
	// Forward fills ex.Response. A Body found there is closed by the caller.
	Forward(ex *exchange.Exchange)
}

// Options are what a Dispatcher is made with. Zero values mean the defaults.
type Options struct {
	// Log takes panics and, at level debug, a line per request.
	Log *slog.Logger
	// TrustedProxies may say who the client is in X-Forwarded-For. Nobody else is
	// believed.
	TrustedProxies []netip.Prefix
	// TerseErrors keeps the names of Services, annotations and objects out of what
	// clients are told; the log has them.
	TerseErrors bool
	// RedirectPort is the port of HTTPS that clients see, for redirects that name it;
	// 443.
	RedirectPort int
	// Asker asks others for filters. Nil: nobody can be asked.
	Asker filter.Asker
	// Inspector returns who judges requests by rules. Nil: nobody can, so what asks for
	// it is refused.
	Inspector func(seclang.RuleSet) filter.Inspector
	// AccessLog is what is logged of requests.
	AccessLog AccessLog
	// Spans takes what routes record. Nil: nobody is told.
	Spans Spans
	// Files keep of request bodies what is too long for memory.
	Files Files
	// CountHosts is how many hosts of rules have their requests counted by name; 0: none.
	CountHosts int
	// Hostname is the name of the machine, or of the pod, which is $hostname.
	Hostname string
	// Nginx, if set, shows the metrics of requests under the names of ingress-nginx, too.
	Nginx *NginxNames
	// Access is told of every request that has ended. It must not wait, nor keep
	// the exchange. Nil: requests are logged where Log takes level debug.
	Access func(Record)
}

// Record is what an access log is told of one request.
type Record struct {
	Exchange *exchange.Exchange
	Route    *route.Route // nil if none matched
	// Took is the time from the end of the request's head to the end of the
	// response; 0 if the head never came in full.
	Took time.Duration
	// Broken says that the response ended early.
	Broken bool
}

// Dispatcher is the exchange.Handler of all front ends.
type Dispatcher struct {
	log         *slog.Logger
	access      func(Record)
	accessLog   AccessLog
	logging     atomic.Pointer[logging] // nil: nothing is
	records     sync.Pool               // *accesslog.Record
	spans       Spans
	spanRecords sync.Pool // *otlp.Record
	forwarded   *filter.Forwarded
	routing     atomic.Pointer[routing]
	metrics     *metrics
	unrouted    *plan
	tools       filter.Tools
	terse       bool
	files       Files
	gathering   atomic.Int64 // bytes of bodies in memory, see gather

	httpPort, httpsPort []byte // as text, for the usual case
	redirectPort        string // that of Options, as text
}

// New returns a Dispatcher that answers 503 until it is given a table.
func New(o Options) *Dispatcher {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dispatcher{
		log:         o.Log,
		access:      o.Access,
		accessLog:   o.AccessLog,
		records:     sync.Pool{New: func() any { return new(accesslog.Record) }},
		spans:       o.Spans,
		spanRecords: sync.Pool{New: func() any { return new(otlp.Record) }},
		terse:       o.TerseErrors,
		files:       o.Files,
		httpPort:    []byte("80"),
		httpsPort:   []byte("443"),

		redirectPort: strconv.Itoa(cmp.Or(o.RedirectPort, 443)),
		forwarded:    filter.NewForwarded(o.TrustedProxies),
		metrics:      newMetrics(o.CountHosts, o.Nginx),
		tools:        filter.NewTools(maphash.MakeSeed()),
	}
	if o.Asker != nil {
		d.tools.Asker = o.Asker
	}
	d.tools.Inspector, d.tools.Normalize, d.tools.Place.Hostname = o.Inspector, route.Normalize, o.Hostname
	if d.access == nil && o.Log.Enabled(context.Background(), slog.LevelDebug) {
		d.access = d.debug
	}
	d.logging.Store(d.accessLog.with(nil, &d.records))
	d.unrouted = &plan{dispatcher: d, series: d.metrics.unrouted, host: d.metrics.host("", nil)}
	if d.metrics.nginx != nil {
		d.unrouted.nginx = d.metrics.nginx.unrouted
	}
	return d
}

// SetTable declares the routes; backends[i] forwards what leads to
// t.Backends[i], and may be nil where that is free. Requests under way keep the
// table that they began with.
func (d *Dispatcher) SetTable(t *route.Table, backends []Forwarder) {
	r := &routing{table: t, backends: backends, plans: &plans{}, front: t.Front.Chain(), unrouted: filter.Compile(t.Unrouted, filter.Host{}, d.tools), forwarded: d.forwarded.With(t.Front)}
	if old := d.routing.Load(); old != nil {
		r.before = old.plans
	}
	d.logging.Store(d.accessLog.with(t.Front, &d.records))
	d.routing.Store(r)
}

// Certificates returns the certificates for a server name, the preferred first.
func (d *Dispatcher) Certificates(serverName string) []*tls.Certificate {
	if r := d.routing.Load(); r != nil {
		return r.table.Certificates(serverName)
	}
	return nil
}

// Certificate returns the one for a client that says hello: the first that it can do
// something with, or if that is none, the first; nil if there is none.
func (d *Dispatcher) Certificate(hello *tls.ClientHelloInfo) *tls.Certificate {
	list := d.Certificates(hello.ServerName)
	if len(list) == 0 {
		return nil
	}
	if len(list) > 1 { // asking costs more than to look it up
		for _, c := range list {
			if hello.SupportsCertificate(c) == nil {
				return c
			}
		}
	}
	return list[0]
}

// TLSPolicy is how clients may speak TLS; nil: as all may.
func (d *Dispatcher) TLSPolicy() *route.TLSPolicy {
	if r := d.routing.Load(); r != nil {
		return r.table.TLS
	}
	return nil
}

// Ciphers returns the suites before TLS 1.3 of handshakes for a server name; nil: those
// of all.
func (d *Dispatcher) Ciphers(serverName string) []uint16 {
	if r := d.routing.Load(); r != nil {
		return r.table.Ciphers(serverName)
	}
	return nil
}

// HTTP2 reports whether HTTP/2 is offered to clients that ask for a server name, if the
// host says so.
func (d *Dispatcher) HTTP2(serverName string) (offered, said bool) {
	if r := d.routing.Load(); r != nil {
		return r.table.HTTP2(serverName)
	}
	return false, false
}

// ClientCAs reports whether clients that ask for a server name are to be asked for a
// certificate, and by which authorities; nil: any.
func (d *Dispatcher) ClientCAs(serverName string) (authorities *x509.CertPool, asked bool) {
	if r := d.routing.Load(); r != nil {
		return r.table.ClientCAs(serverName)
	}
	return nil, false
}

// Handle implements exchange.Handler.
func (d *Dispatcher) Handle(ex *exchange.Exchange) {
	if next := ex.Next; next != nil {
		ex.Next = nil
		defer d.recover(ex)
		next.Handle(ex)
		return
	}
	d.begin(ex)
	if ex.Response.Status != 0 {
		return // the front end has refused it
	}
	defer d.recover(ex)
	if r, p := d.admit(ex); p != nil {
		p.serve(ex, r)
	}
}

// Admit implements exchange.Admitter.
func (d *Dispatcher) Admit(ex *exchange.Exchange) bool {
	d.begin(ex)
	defer d.recover(ex)
	r, p := d.admit(ex)
	if p != nil {
		ex.Next = &admitted{p, r}
	}
	return ex.Next != nil
}

// begin notes what a request is before anything is made of it.
func (d *Dispatcher) begin(ex *exchange.Exchange) {
	ex.Observer = d.unrouted
	ex.Request.Asked.Host, ex.Request.Asked.Target = ex.Request.Host, ex.Request.Target
	ex.Request.Routed = ex.Request.Path
}

// admitted is a request that goes on when its body comes.
type admitted struct {
	plan    *plan
	routing *routing
}

// Handle implements exchange.Handler.
func (a *admitted) Handle(ex *exchange.Exchange) { a.plan.serve(ex, a.routing) }

// recover turns a panic into a 500.
func (d *Dispatcher) recover(ex *exchange.Exchange) {
	r := recover()
	if r == nil {
		return
	}
	d.metrics.panics.Add(1)
	d.log.Error("a request made the proxy panic", "panic", r, "stack", string(debug.Stack()))
	if b := ex.Response.Body; b != nil {
		ex.Response.Body = nil
		b.Close()
	}
	ex.Response.Upgraded = nil
	ex.Answer(500, "500 Internal Server Error: the proxy failed; its log says more\n")
	ex.Response.Close = true
}

// admit finds the plan for a request, and lets its filters see the request. Where
// that answers it, there is no plan.
func (d *Dispatcher) admit(ex *exchange.Exchange) (*routing, *plan) {
	r := d.routing.Load()
	if r == nil {
		ex.Answer(503, "503 Service Unavailable: the proxy has no routes yet\n")
		return nil, nil
	}
	ex.Request.Random = [2]uint64{rand.Uint64(), rand.Uint64()}
	found, guard := r.table.Match(&ex.Request)
	told := guard != nil || r.front != nil || found == nil && r.unrouted != nil // who the client is
	if told {
		r.forwarded.Apply(ex, d.connectionOf(ex), ex.Request.Random)
	}
	if !r.front.Request(ex) {
		r.unrouted.Response(ex)
		return nil, nil
	}
	if guard != nil && !d.passes(ex, r.planOf(guard, d), found) {
		return nil, nil
	}
	ex.Passed = 0
	if found == nil {
		r.notFound(ex, noRule)
		return nil, nil
	}
	p := r.planOf(found, d)
	ex.Observer = p
	if !told {
		r.forwarded.Apply(ex, d.connectionOf(ex), ex.Request.Random)
	}
	return r, d.pass(ex, r, p)
}

// pass lets the filters of a plan see a request, and of others to which scripts move it. It
// returns the plan to go on with; nil: the request is answered.
func (d *Dispatcher) pass(ex *exchange.Exchange, r *routing, p *plan) *plan {
	for p != nil {
		if p.pages.Lead() {
			ex.Script.Before = ex.Copy()
		}
		if p.filters.Request(ex) {
			return p
		}
		if !ex.Script.Moved {
			p.respond(ex, r, false)
			return nil
		}
		p = d.moved(ex, r, p)
	}
	return nil
}

// moved finds the plan for the path that a script or an error page of p has moved a request to.
// Who may pass there, the filters of that say. Where nobody has that path, or odd spellings of
// it may be read as another's, it is answered.
func (d *Dispatcher) moved(ex *exchange.Exchange, r *routing, p *plan) *plan {
	ex.Request.Routed = ex.Request.Path
	if n := ex.Script.Passage; n > 0 {
		return d.passage(ex, r, r.table.Passage(&ex.Request, p.route, n))
	}
	found, guard := r.table.Match(&ex.Request)
	if guard != nil && !d.passes(ex, r.planOf(guard, d), found) {
		return nil
	}
	ex.Passed = 0
	if found == nil {
		r.notFound(ex, "404 Not Found: no Ingress has a rule for this host and the path that it was rewritten to\n")
		return nil
	}
	ex.Script.Values = p.route.Carried(found, ex.Script.Values)
	ex.Script.Again()
	if found.Pattern() != nil { // which has been found in the path, behind all others
		ex.Script.Groups = nil
	}
	next := r.planOf(found, d)
	ex.Observer = next
	return next
}

// passage is moved where the script has led to a route of its own, which is nil if that is gone.
func (d *Dispatcher) passage(ex *exchange.Exchange, r *routing, to *route.Route) *plan {
	ex.Passed = 0
	if to == nil {
		ex.Answer(503, "503 Service Unavailable: the location of this path leads nowhere\n")
		return nil
	}
	unasked := ex.Script.Unasked
	ex.Script.Again()
	ex.Script.Passed, ex.Script.Unasked = true, unasked
	next := r.planOf(to, d)
	ex.Observer = next
	return next
}

// passes reports whether ex passes the guards of a route that it is not for, but found
// is, if that is any. If not, it is answered and counted as the guards' route's.
func (d *Dispatcher) passes(ex *exchange.Exchange, p *plan, found *route.Route) bool {
	passed := p.guards.Request(ex)
	if passed && found != nil && p.route.Filters.Overlooked(found.Filters) {
		ex.Answer(400, "400 Bad Request: the path can be read as one whose requests are inspected by other rules; write it without escaped slashes and parameters\n")
		passed = false
	}
	if !passed {
		ex.Passed = 0
		ex.Observer = p
	}
	return passed
}

// connectionOf returns what the front end knows of the client's connection. The
// port is the one that the client thinks it speaks to: a load balancer may have
// mapped it to another, so what a PROXY header says comes first, and what the client
// wrote before the usual ones.
func (d *Dispatcher) connectionOf(ex *exchange.Exchange) filter.Connection {
	c := filter.Connection{Peer: ex.Request.Client.Addr(), TLS: ex.Request.TLS, Port: ex.Request.Port}
	if len(c.Port) > 0 {
		c.TLS = c.TLS || string(c.Port) == "443" // where TLS ended in front of us
		return c
	}
	if _, c.Port = exchange.SplitHost(ex.Request.Host); len(c.Port) == 0 {
		c.Port = d.httpPort
		if c.TLS {
			c.Port = d.httpsPort
		}
	}
	return c
}

// debug is the access log of who set no other. It costs what logs cost.
func (d *Dispatcher) debug(r Record) {
	req := &r.Exchange.Request
	var ingress, service string
	if r.Route != nil {
		ingress, service = r.Route.Owner.Key.String(), r.Route.Service.String()
	}
	d.log.Debug("request", "client", req.Client.Addr(), "method", string(req.Method), "host", string(req.Host),
		"target", string(req.Target), "status", r.Exchange.Response.Status, "took", r.Took, "ingress", ingress, "service", service)
}

var (
	_ exchange.Handler  = (*Dispatcher)(nil)
	_ exchange.Admitter = (*Dispatcher)(nil)
)
