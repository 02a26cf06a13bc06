package dispatch

import (
	"sync"
	"time"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/route"
)

// routing is a table and what its backends are forwarded by. It is replaced
// whole.
type routing struct {
	table     *route.Table
	backends  []Forwarder
	front     filter.Chain // of all requests, whatever their route
	unrouted  filter.Chain // of responses to those that have none
	forwarded *filter.Forwarded
	plans     *plans
	before    *plans // of the table before: a route that stays keeps its plan
}

// plans are filled as routes are used: *route.Route -> *plan.
type plans = sync.Map

// plan is what happens to the requests of one route, compiled when the first of
// them comes.
type plan struct {
	dispatcher *Dispatcher
	route      *route.Route // nil: no route
	series     *series
	host       *byClass    // nil: requests are not counted by host
	nginx      *nginxRoute // nil: nor as ingress-nginx does
	filters    filter.Chain
	guards     filter.Chain // those of filters that decide who may pass
	pages      *filter.Pages
	place      accesslog.Place
	cookiePath string // see route.Route.CookiePath
	unlogged   bool
}

// noRule is said of what no rule is for.
const noRule = "404 Not Found: no Ingress has a rule for this host and path\n"

// notFound answers what no route is for.
func (r *routing) notFound(ex *exchange.Exchange, body string) {
	ex.Answer(404, body)
	r.unrouted.Response(ex)
}

func (r *routing) planOf(rt *route.Route, d *Dispatcher) *plan {
	if v, ok := r.plans.Load(rt); ok {
		p, _ := v.(*plan)
		return p
	}
	if r.before != nil {
		if v, ok := r.before.Load(rt); ok {
			r.plans.Store(rt, v)
			p, _ := v.(*plan)
			return p
		}
	}
	p := &plan{
		dispatcher: d,
		route:      rt,
		series:     d.metrics.get(seriesKey{rt.Owner.Key, rt.Service}),
		host:       d.metrics.host(rt.Host, r.table),
		nginx:      d.metrics.asNginx(rt),
		filters:    d.compile(rt),
		guards:     d.compileGuards(rt),
		pages:      filter.PagesOf(rt.Filters, d.toolsOf(rt)),
		cookiePath: rt.CookiePath(),
		unlogged:   rt.Unlogged,
	}
	p.place = placeOf(p)
	r.plans.Store(rt, p)
	return p
}

// compileGuards returns the filters of a route that decide who may pass. They take
// nothing that they would have to give back.
func (d *Dispatcher) compileGuards(rt *route.Route) filter.Chain {
	if rt.Closed != "" {
		return filter.Chain{filter.Closed(d.tellable(rt))}
	}
	return filter.GuardsOf(rt.Filters, d.toolsOf(rt))
}

// tellable is what a client may know of why a route is closed.
func (d *Dispatcher) tellable(rt *route.Route) string {
	if d.terse {
		return ""
	}
	return rt.Closed
}

// toolsOf returns the tools of a route's filters.
func (d *Dispatcher) toolsOf(rt *route.Route) filter.Tools {
	t := d.tools
	t.Place = rt.Place()
	t.Place.Hostname = d.tools.Place.Hostname
	return t
}

// compile returns the filters of a route.
func (d *Dispatcher) compile(rt *route.Route) filter.Chain {
	if rt.Closed != "" {
		if d.terse {
			d.log.Warn("requests of a closed route get a 503", "ingress", rt.Owner.Key.String(), "host", rt.Host, "path", rt.Path, "why", rt.Closed)
		}
		return append(filter.Chain{filter.Closed(d.tellable(rt))}, filter.Compile(nil, filter.Host{HSTS: rt.HSTS}, d.toolsOf(rt))...)
	}
	if rt.Undecrypted {
		return append(filter.Chain{undecrypted()}, d.compileOpen(rt)...)
	}
	return d.compileOpen(rt)
}

// compileOpen returns the filters of a route that is not closed.
func (d *Dispatcher) compileOpen(rt *route.Route) filter.Chain {
	host := filter.Host{RedirectCode: rt.RedirectCode, HSTS: rt.HSTS}
	if rt.RedirectTLS {
		host.ToTLS = rt.RedirectsToTLS
	}
	if rt.RedirectPort {
		host.RedirectPort = d.redirectPort
	}
	return filter.Compile(rt.Filters, host, d.toolsOf(rt))
}

// serve has a request answered that the filters let pass.
func (p *plan) serve(ex *exchange.Exchange, r *routing) {
	f := p.route.Forwarding
	ex.Request.Forwarding, ex.Request.CookiePath = f, p.cookiePath
	backend := r.lead(p.route, ex)
	rate := int64(-1)
	if p.inspect(ex, p.route.GRPC && r.streams(backend)) && (f == nil || !f.Gather && !f.HTTP10 || p.route.NoRule || r.streams(backend) || p.dispatcher.gather(ex)) {
		r.forwardOr(ex, p.route, backend)
		ex.Script.To, rate = filter.Steer(ex)
		p.filters.Upstream(ex)
	}
	if p.respond(ex, r, true) {
		return
	}
	pace(ex, f, rate)
	p.hold(ex)
}

// lead returns the index of the backend for one request, or -1: that of its script, or of its
// route. A canary that has nobody to ask leaves its share to the Ingress that it is of.
func (r *routing) lead(rt *route.Route, ex *exchange.Exchange) int {
	if n := ex.Script.Elsewhere(); n > 0 && n <= len(rt.Detours) {
		return rt.Detours[n-1]
	}
	random := ex.Request.Random[1]
	backend := rt.Lead(random)
	if main := rt.Main(); main != nil && r.empty(backend) {
		return main.Lead(random)
	}
	return backend
}

// streams reports whether the backend with an index may answer while it is being
// asked, as those of HTTP/2 do: their requests are not gathered, as in nginx.
func (r *routing) streams(backend int) bool {
	return backend >= 0 && backend < len(r.table.Backends) && r.table.Backends[backend].HTTP2
}

// forward asks the backend with an index.
func (r *routing) forward(ex *exchange.Exchange, backend int) {
	if backend < 0 || backend >= len(r.backends) || r.backends[backend] == nil {
		ex.Answer(503, "503 Service Unavailable: this route leads nowhere\n")
		return
	}
	r.backends[backend].Forward(ex)
}

// Finished implements exchange.Observer.
func (p *plan) Finished(ex *exchange.Exchange, broken bool) {
	now := time.Now()
	ex.Response.Ended = now
	var took time.Duration
	if at := ex.Request.Received; !at.IsZero() {
		took = now.Sub(at)
	}
	p.count(ex, took, broken)
	release(ex)
	p.filters.Finished(ex)
	if ex.Response.Upgraded == nil { // of a tunnel is told at its end
		p.tell(p.logging(), ex, now, took, broken)
	}
	if access := p.dispatcher.access; access != nil {
		access(Record{Exchange: ex, Route: p.route, Took: took, Broken: broken})
	}
}

// count counts a request that has ended.
func (p *plan) count(ex *exchange.Exchange, took time.Duration, broken bool) {
	status, m := statusOf(ex.Response.Status), p.dispatcher.metrics
	p.series.observe(status, took)
	p.series.weigh(ex)
	if took > 0 {
		p.series.split(ex, took)
	}
	if broken {
		p.series.broke()
	}
	m.methods[methodOf(ex.Request.Method)].count(status)
	if p.host != nil {
		p.host.count(status)
	}
	if p.nginx != nil {
		m.nginx.observe(p.nginx, ex, &p.place, status, took)
	}
}

// logging is how requests of p are logged now; nil: not at all.
func (p *plan) logging() *logging {
	if p.unlogged {
		return nil
	}
	return p.dispatcher.logging.Load()
}

var _ exchange.Observer = (*plan)(nil)
