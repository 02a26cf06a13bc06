package filter

import "quayside.io/proxy/exchange"

// RedirectedRequest sends some requests elsewhere. Groups in the address are those that the
// pattern of the condition finds.
//
// The field X-Forwarded-Proto is what came, whoever sent it: behind a load balancer that ends
// TLS and is not trusted, a redirect to https would never end.
type RedirectedRequest struct {
	Condition
	Redirect
}

// redirectedRequests answers what the first of list says that is about the request.
func redirectedRequests(list []RedirectedRequest, at Place) Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		for i := range list {
			r := &list[i]
			if value, holds := r.find(ex, &at); holds {
				sendTo(ex, r.Code, r.To.fill(ex, r.foundIn(value, at)))
				return false
			}
		}
		return true
	}}
}
