package filter

import "quayside.io/proxy/exchange"

// DeniedRequest is what nobody may ask for, whatever the path. A condition about that is
// none of them: a path that is denied is so in every spelling, see DeniedPath.
type DeniedRequest struct {
	Condition
	Status int // one of DeniedStatuses
}

// deniedRequests refuses what the first of list says that is about the request.
func deniedRequests(list []DeniedRequest, at Place) Filter {
	texts := DeniedStatuses()
	return Filter{Request: func(ex *exchange.Exchange) bool {
		for i := range list {
			if d := &list[i]; d.isOfAny(ex, &at) {
				ex.Answer(d.Status, texts[d.Status])
				return false
			}
		}
		return true
	}}
}
