package explain

import (
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// foreseen tells what a route answers a request by itself, and returns the route that does the
// rest: where the path is rewritten to another it may be another, and where nothing follows it
// is nil.
func (t *tracer) foreseen(r *route.Route, req exchange.Request) *route.Route {
	for passes := 0; ; passes++ {
		moved, answered := t.foreseenBy(r, req, passes)
		switch {
		case answered:
			return nil
		case moved == nil:
			return r
		}
		req.Path, req.Target = moved, moved
		next, _ := t.Routes.Match(&req)
		if next == nil {
			t.broken("rewrite", "404: Ingress %s rewrites the path to %s by a snippet, and no Ingress has a rule for that", r.Owner.Key, moved)
			return nil
		}
		t.works("rewrite", "Ingress %s rewrites the path to %s by a snippet; what follows holds for that", r.Owner.Key, moved)
		t.routed(next, moved)
		if r = next; r.Closed != "" {
			return nil
		}
	}
}

// foreseenBy is foreseen of one route.
func (t *tracer) foreseenBy(r *route.Route, req exchange.Request, passes int) (moved []byte, answered bool) {
	said := r.Foresee(req, passes)
	if said.Refused != 0 {
		t.unknown("refused", "Ingress %s refuses a request without fields with %d, by denied-requests or a snippet; what follows holds for those that pass", r.Owner.Key, said.Refused)
	}
	switch {
	case said.Status == 0:
		return said.Moved, false
	case said.Location == "" && !said.Refuses:
		t.works("response", "Ingress %s answers %d itself; no backend is asked", r.Owner.Key, said.Status)
	case said.Location == "":
		t.broken("refused", "%d: Ingress %s, or another of its namespace on this host, refuses the path by denied-paths or a snippet; take the line out if it is to be served", said.Status, r.Owner.Key)
	default:
		t.works("redirect", "Ingress %s answers %d and sends the client to %s; no backend is asked", r.Owner.Key, said.Status, said.Location)
	}
	return nil, true
}
