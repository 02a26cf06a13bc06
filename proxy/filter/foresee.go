package filter

import (
	"cmp"

	"quayside.io/proxy/exchange"
)

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
	// request goes instead, and At is what scripts have made of it by then.
	Moved   []byte
	Passage int
	At      exchange.Scripted
	// Detour, unless 0, is who of the route's is asked in the place of its backend.
	Detour int
	// Page is what an error page makes of Refused; nil: none does.
	Page *ForeseenPage
}

// ForeseenPage is an error page: the client is sent to Location, or the route of Path answers, or
// that of a location with a name, or the page itself with Status.
type ForeseenPage struct {
	Status   int
	Location string
	Path     string // "": it is no other route
}

// Foresee returns what s answers a request of which the method, the host, the path and TLS are
// known, and no fields. at is what scripts have made of it before.
func Foresee(s *Settings, tools Tools, r exchange.Request, at exchange.Scripted) (said Foreseen) {
	if s == nil {
		return said
	}
	answer := func(c Chain) *exchange.Exchange {
		ex := &exchange.Exchange{Request: r, Script: at}
		c.Request(ex)
		said.Detour = ex.Script.Elsewhere()
		if ex.Script.Moved {
			said.Moved, said.Passage = ex.Request.Path, ex.Script.Passage
			passed := said.Passage > 0
			said.At = exchange.Scripted{Passes: ex.Script.Passes, Passed: passed, Unasked: passed && ex.Script.Unasked}
		}
		return ex
	}
	if said.Status = answer(Chain{deniedPaths(s.DeniedPaths)}).Response.Status; said.Status != 0 {
		said.Refuses = true
		return said
	}
	refused := answer(Chain{deniedRequests(s.DeniedRequests, tools.Place)})
	if answered := answer(s.answers(&tools)); answered.Response.Status < 400 { // only scripts refuse
		said.Status, said.Location = answered.Response.Status, string(answered.Response.Header.Get("Location"))
	} else {
		refused = answered
	}
	if said.Refused = refused.Response.Status; said.Refused != 0 {
		said.Page = foreseePage(PagesOf(s, tools), refused, r)
	}
	return said
}

// foreseePage returns what an error page makes of a refusal of r; nil: nothing.
func foreseePage(pages *Pages, refused *exchange.Exchange, r exchange.Request) *ForeseenPage {
	if pages == nil {
		return nil
	}
	set, i, _ := pages.of(refused, false)
	refused.Script.Before = &exchange.Exchange{Request: r}
	leads := pages.Replace(refused, false)
	if !refused.Script.Paged {
		return nil
	}
	page := &ForeseenPage{Status: refused.Response.Status, Location: string(refused.Response.Header.Get("Location"))}
	if leads {
		page.Path = cmp.Or(set.Pages[i].At, string(refused.Request.Path))
	}
	return page
}
