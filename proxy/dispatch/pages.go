package dispatch

import (
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// respond lets error pages and then the filters see a response, perhaps of a backend that was
// asked. It reports whether another route has answered instead, and all is done.
func (p *plan) respond(ex *exchange.Exchange, r *routing, asked bool) (elsewhere bool) {
	switch {
	case ex.Script.Paged: // once
		if p.pages != nil && asked {
			p.pages.Fail(ex)
		}
		filter.Paged(ex, asked)
	case p.pages != nil:
		if p.pages.Replace(ex, asked) {
			p.follow(ex, r, &ex.Script.Before.Request)
			return true
		}
	}
	filter.AddKept(ex)
	p.filters.Response(ex)
	if p.route.Closed != "" { // what its Ingress sets may be why
		r.unrouted.Response(ex)
	}
	return false
}

// follow has the route of the path answer to which a page or the backend of p leads. What the
// client sends as a body is not that route's; was is the request with it.
func (p *plan) follow(ex *exchange.Exchange, r *routing, was *exchange.Request) {
	unread, now := ex.Response.Close, ex.Request
	ex.Request = *was // of which the filters took something
	p.filters.Finished(ex)
	ex.Request, ex.Passed = now, 0
	d := p.dispatcher
	if next := d.pass(ex, r, d.moved(ex, r, p)); next != nil {
		next.serve(ex, r)
	}
	req := &ex.Request
	req.Method, req.Body, req.Length, req.Trailer, req.Upgrade = was.Method, was.Body, was.Length, was.Trailer, was.Upgrade
	ex.Response.Close = ex.Response.Close || unread
}
