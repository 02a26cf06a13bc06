package filter

import "quayside.io/proxy/exchange"

// Foreseen is what a request is answered before anybody is asked who it is from.
type Foreseen struct {
	// Refused is the status of DeniedRequests or Scripts, which fields and other addresses may
	// change; 0: none. The others are about what passes them.
	Refused  int
	Status   int    // 0: nothing; what follows decides
	Location string // where the client is sent; empty: it is answered, or refused as every request for the path
	Refuses  bool   // Status is that of DeniedPaths
	// Moved is the path that a script has put in the place of the request's, whose route is
	// looked for; nil: none has. Passage, unless 0, is the route of the script's own to which the
	// request goes instead.
	Moved   []byte
	Passage int
}

// Foresee returns what s answers a request of which the method, the host, the path and TLS are
// known, and no fields. at is what scripts have made of it before.
func Foresee(s *Settings, tools Tools, r exchange.Request, at exchange.Scripted) (said Foreseen) {
	if s == nil {
		return said
	}
	answer := func(c Chain) (status int, location string) {
		ex := &exchange.Exchange{Request: r, Script: at}
		c.Request(ex)
		if ex.Script.Moved {
			said.Moved, said.Passage = ex.Request.Path, ex.Script.Passage
		}
		return ex.Response.Status, string(ex.Response.Header.Get("Location"))
	}
	if said.Status, _ = answer(Chain{deniedPaths(s.DeniedPaths)}); said.Status != 0 {
		said.Refuses = true
		return said
	}
	said.Refused, _ = answer(Chain{deniedRequests(s.DeniedRequests, tools.Place)})
	if said.Status, said.Location = answer(s.answers(&tools)); said.Status >= 400 { // only scripts do
		said.Refused, said.Status = said.Status, 0
	}
	return said
}
