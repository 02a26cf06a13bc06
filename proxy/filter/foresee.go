package filter

import "quayside.io/proxy/exchange"

// Foreseen is what a request is answered before anybody is asked who it is from.
type Foreseen struct {
	// Refused is the status of DeniedRequests, which fields and other addresses may change;
	// 0: none. The others are about what passes them.
	Refused  int
	Status   int    // 0: nothing; what follows decides
	Location string // where the client is sent; empty: it is answered, or refused as every request for the path
	Refuses  bool   // Status is that of DeniedPaths
}

// Foresee returns what s answers a request of which the method, the host, the path and TLS are
// known, and no fields.
func Foresee(s *Settings, at Place, r exchange.Request) (said Foreseen) {
	if s == nil {
		return said
	}
	answered := func(f Filter) bool {
		ex := &exchange.Exchange{Request: r}
		if f.Request(ex) {
			return false
		}
		said.Status, said.Location = ex.Response.Status, string(ex.Response.Header.Get("Location"))
		return true
	}
	if answered(deniedPaths(s.DeniedPaths)) {
		said.Refuses = true
		return said
	}
	if answered(deniedRequests(s.DeniedRequests, at)) {
		said = Foreseen{Refused: said.Status}
	}
	_ = answered(redirectedRequests(s.RedirectedRequests, at)) || answered(answeredRequests(s.AnsweredRequests, at)) ||
		s.CanonicalHost != "" && answered(canonicalHost(s.CanonicalHost, s.RedirectCode)) ||
		s.AppRoot != nil && answered(appRoot(s.AppRoot, at)) ||
		s.Redirect != nil && answered(redirect(s.Redirect, at))
	return said
}
