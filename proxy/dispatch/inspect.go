package dispatch

import (
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// inspect has a firewall judge the body of a request, and reports whether it goes on.
// What it is shown is kept for the upstream. The messages of a gRPC stream come while it
// is answered, so nobody can wait for the last; but who asks may call anything gRPC, so
// that is believed only where calls says that the backend speaks nothing else.
func (p *plan) inspect(ex *exchange.Exchange, calls bool) bool {
	i := ex.Inspection
	if i == nil {
		return true
	}
	var (
		beginning []byte
		whole     = ex.Request.Body == nil
		limit     = i.Wants()
	)
	if limit > 0 && !whole && !(calls && isGRPC(ex)) {
		var ok bool
		// A byte more tells whether it is longer.
		if beginning, whole, ok = p.dispatcher.show(ex, limit+1); !ok {
			return false
		}
		if len(beginning) <= limit && !whole { // memory is full
			filter.Refuse(ex, exchange.Verdict{Status: 503, Hangup: true})
			return false
		}
		if len(beginning) > limit {
			beginning, whole = beginning[:limit], false
		}
	}
	if verdict := i.Body(beginning, whole); verdict.Status != 0 {
		filter.Refuse(ex, verdict)
		ex.Response.Close = ex.Response.Close || !whole
		return false
	}
	return true
}

// isGRPC reports whether who asks speaks gRPC, of which gRPC-Web is none: its calls end
// before they are answered.
func isGRPC(ex *exchange.Exchange) bool {
	const kind = "application/grpc"
	t := ex.Request.Header.Get("Content-Type")
	return len(t) >= len(kind) && exchange.EqualFold(t[:len(kind)], kind) && (len(t) == len(kind) || t[len(kind)] == '+' || t[len(kind)] == ';')
}
