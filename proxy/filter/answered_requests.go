package filter

import "quayside.io/proxy/exchange"

// AnsweredRequest answers some requests without an upstream, whoever asks. Groups in the text
// are those that the pattern of the condition finds.
type AnsweredRequest struct {
	Condition
	DirectResponse
	// Type is the media type of the text; empty: text/plain. One with variables has none but
	// that and application/json, where what a client sends is never taken for a page.
	Type string
}

// answeredRequests answers what the first of list says that is about the request.
func answeredRequests(list []AnsweredRequest, at Place) Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		for i := range list {
			a := &list[i]
			value, holds := a.find(ex, &at)
			if !holds {
				continue
			}
			a.answer(ex, a.DirectResponse.Text.append(nil, ex, a.foundIn(value, at), appendAsIs, appendClean), a.Type)
			return false
		}
		return true
	}}
}
