package explain

import (
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// foreseen tells what a route answers a request by itself, and reports whether nothing follows.
func (t *tracer) foreseen(r *route.Route, req exchange.Request) bool {
	said := r.Foresee(req)
	if said.Refused != 0 {
		t.unknown("refused", "Ingress %s refuses a request without fields with %d, by denied-requests or a snippet; what follows holds for those that pass", r.Owner.Key, said.Refused)
	}
	switch {
	case said.Status == 0:
		return false
	case said.Location == "" && !said.Refuses:
		t.works("response", "Ingress %s answers %d itself; no backend is asked", r.Owner.Key, said.Status)
	case said.Location == "":
		t.broken("refused", "%d: Ingress %s, or another of its namespace on this host, refuses the path by denied-paths or a snippet; take the line out if it is to be served", said.Status, r.Owner.Key)
	default:
		t.works("redirect", "Ingress %s answers %d and sends the client to %s; no backend is asked", r.Owner.Key, said.Status, said.Location)
	}
	return true
}
