package filter

import (
	"slices"

	"quayside.io/proxy/exchange"
)

// Filter is what one option does to the exchanges of a route. It is shared by all
// of them at once. Each of its functions may be nil.
type Filter struct {
	// Request sees the request before it is forwarded. False says that the filter
	// has answered it.
	Request func(ex *exchange.Exchange) bool
	// Upstream sees the response that an upstream gave, or our own that there is none,
	// before any Response.
	Upstream func(ex *exchange.Exchange)
	// Response sees the response before it is written, whoever made it.
	Response func(ex *exchange.Exchange)
	// Finished frees what Request took. It is called once the response, or the tunnel
	// that came of it, has ended, for every exchange that Request let go on. Of a
	// tunnel's exchange only Request.Client is left.
	Finished func(ex *exchange.Exchange)
}

// Chain is the filters of a route in the order in which requests meet them. Nil
// lets everything pass.
type Chain []Filter

// Request runs the requests' side until a filter has answered, and reports
// whether none has.
func (c Chain) Request(ex *exchange.Exchange) bool {
	for i := range c {
		if f := c[i].Request; f != nil && !f(ex) {
			return false
		}
		ex.Passed++
	}
	return true
}

// Upstream runs what sees the upstream's response.
func (c Chain) Upstream(ex *exchange.Exchange) {
	for i := range c {
		if f := c[i].Upstream; f != nil {
			f(ex)
		}
	}
}

// Response runs the responses' side.
func (c Chain) Response(ex *exchange.Exchange) {
	for i := range c {
		if f := c[i].Response; f != nil {
			f(ex)
		}
	}
}

// Finished frees what the filters that ex has passed took for it.
func (c Chain) Finished(ex *exchange.Exchange) {
	for i := range min(ex.Passed, len(c)) {
		if f := c[i].Finished; f != nil {
			f(ex)
		}
	}
}

// Frees reports whether any filter has something to free.
func (c Chain) Frees() bool {
	return slices.ContainsFunc(c, func(f Filter) bool { return f.Finished != nil })
}
