package filter

import (
	"regexp"

	"quayside.io/proxy/exchange"
)

// UpstreamPath is what backends are asked for in the place of the path: nginx's proxy_pass with
// one. All other filters see the request's.
type UpstreamPath struct {
	// Location is what paths begin with, and To takes the place of that. A path that a script has
	// rewritten for good is sent as it is.
	Location, To string
	// Whole says that To is all that is asked for, without a query.
	Whole bool
	// Asked says that backends are asked for what the client asked for, whatever became of that.
	Asked bool
}

// upstreamPath puts the target back once a backend has answered.
func upstreamPath(o *UpstreamPath, at Place) Filter {
	to := newRewriter(Rewrite{
		Pattern: regexp.MustCompile("(?s)^" + regexp.QuoteMeta(o.Location) + "(.*)$"),
		Target:  &Template{parts: []part{{literal: []byte(o.To)}, {variable: "group", group: 1}}},
		Decode:  true,
	}, at)
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			r := &ex.Request
			ex.Script.Target = r.Target
			switch {
			case o.Asked:
				r.Target = asked(r)
			case o.Whole:
				r.Target = []byte(o.To)
			case !ex.Script.Broke:
				passes, _ := to.request(ex)
				return passes
			}
			return true
		},
		Upstream: func(ex *exchange.Exchange) { ex.Request.Target = ex.Script.Target },
	}
}
