package explain

import (
	"fmt"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// foreseen tells what a route answers a request by itself, and returns the route that does the
// rest: where the path is rewritten to another, which req is left with, or a location leads
// elsewhere, it may be another, and where nothing follows it is nil.
func (t *tracer) foreseen(r *route.Route, req *exchange.Request) *route.Route {
	var at exchange.Scripted
	for {
		said, answered := t.foreseenBy(r, *req, at)
		switch {
		case answered:
			return nil
		case said.Moved == nil && said.Detour > 0:
			return t.detoured(r, said.Detour)
		case said.Moved == nil:
			return r
		}
		req.Path, req.Target, at = said.Moved, said.Moved, said.At
		if r = t.next(r, req, said.Passage); r == nil || r.Closed != "" {
			return nil
		}
	}
}

// detoured returns r with the backend that its script leads to.
func (t *tracer) detoured(r *route.Route, number int) *route.Route {
	if number > len(r.Detours) || r.Detours[number-1] < 0 {
		t.broken("location", "503: a snippet of Ingress %s names another backend, which leads nowhere", r.Owner.Key)
		return nil
	}
	t.works("location", "a snippet of Ingress %s names another backend, which is asked instead", r.Owner.Key)
	to := *r
	to.Backend, to.Split = r.Detours[number-1], nil
	return &to
}

// next returns the route to which a script of r moves a request; nil: there is none.
func (t *tracer) next(r *route.Route, req *exchange.Request, passage int) *route.Route {
	if passage > 0 {
		next := t.Routes.Passage(req, r, passage)
		if next != nil {
			t.works("location", "a location of the server-snippet of Ingress %s has proxy_pass; what follows holds for that, and of the Ingress's own options none", r.Owner.Key)
			t.leads(next, req.Path)
		}
		return next
	}
	next, _ := t.Routes.Match(req)
	if next == nil {
		t.broken("rewrite", "404: Ingress %s rewrites the path to %s by a snippet, and no Ingress has a rule for that", r.Owner.Key, req.Path)
		return nil
	}
	t.works("rewrite", "Ingress %s rewrites the path to %s by a snippet; what follows holds for that", r.Owner.Key, req.Path)
	t.leads(next, req.Path)
	return next
}

// foreseenBy is foreseen of one route.
func (t *tracer) foreseenBy(r *route.Route, req exchange.Request, at exchange.Scripted) (said route.Foreseen, answered bool) {
	said = r.Foresee(req, at)
	if said.Refused != 0 {
		t.unknown("refused", "Ingress %s refuses a request without fields with %d, by denied-requests or a snippet%s; what follows holds for those that pass", r.Owner.Key, said.Refused, paged(&said))
	}
	switch {
	case said.Status == 0:
		return said, false
	case said.Location == "" && !said.Refuses:
		t.works("response", "Ingress %s answers %d itself; no backend is asked", r.Owner.Key, said.Status)
	case said.Location == "":
		t.broken("refused", "%d: Ingress %s, or another of its namespace on this host, refuses the path by denied-paths or a snippet; take the line out if it is to be served", said.Status, r.Owner.Key)
	default:
		t.works("redirect", "Ingress %s answers %d and sends the client to %s; no backend is asked", r.Owner.Key, said.Status, said.Location)
	}
	return said, true
}

// paged says what an error page makes of a refusal.
func paged(said *route.Foreseen) string {
	switch page := said.Page; {
	case page == nil:
		return ""
	case page.Path != "":
		return fmt.Sprintf(", in whose place the route of %s answers, as its error page", page.Path)
	case page.Location != "":
		return fmt.Sprintf(", in whose place its error page answers %d and sends the client to %s", page.Status, page.Location)
	default:
		return fmt.Sprintf(", in whose place its error page answers %d", page.Status)
	}
}
