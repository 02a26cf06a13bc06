package filter

import (
	"bytes"

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
func upstreamPath(o *UpstreamPath) Filter {
	to := appendEscaped(nil, []byte(o.To))
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			r := &ex.Request
			ex.Script.Target = r.Target
			switch {
			case o.Asked:
				r.Target = asked(r)
			case o.Whole:
				r.Target = to
			case !ex.Script.Broke:
				return replaceLocation(ex, o.Location, to)
			}
			return true
		},
		Upstream: func(ex *exchange.Exchange) { ex.Request.Target = ex.Script.Target },
	}
}

// replaceLocation puts to in the place of what the path begins with. It reports false where that
// has been answered.
func replaceLocation(ex *exchange.Exchange, location string, to []byte) bool {
	r := &ex.Request
	rest, found := bytes.CutPrefix(readByNginx(r.Path), []byte(location))
	if !found {
		return true
	}
	b := ofOneSlash(appendEscaped(bytes.Clone(to), rest))
	if climbs(b) {
		ex.Answer(400, "400 Bad Request: the path cannot be rewritten\n")
		return false
	}
	if query := exchange.Query(r.Target); len(query) > 0 {
		b = append(append(b, '?'), query...)
	}
	r.Target = b
	return true
}
