package filter

import "quayside.io/proxy/exchange"

// AnsweredRequest answers some requests without an upstream, whoever asks.
type AnsweredRequest struct {
	Condition
	DirectResponse
	// Type is the media type of the text; empty: text/plain. One with variables has none but
	// that and application/json, where what a client sends is never taken for a page.
	Type string
}

// answeredRequests answers what the first of list says that is about the request.
func answeredRequests(list []AnsweredRequest, at Place) Filter {
	answers := make([]Filter, len(list))
	for i := range list {
		answers[i] = directResponse(&list[i].DirectResponse, at)
	}
	return Filter{Request: func(ex *exchange.Exchange) bool {
		for i := range list {
			if _, holds := list[i].find(ex, &at); !holds {
				continue
			}
			answers[i].Request(ex)
			if h := &ex.Response.Header; list[i].Type != "" && h.Get("Content-Type") != nil {
				h.Set("Content-Type", list[i].Type)
			}
			return false
		}
		return true
	}}
}
