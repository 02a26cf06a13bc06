package explain

import (
	"fmt"
	"net/netip"
	"strings"

	"quayside.io/proxy/route"
)

// leads tells of the route of a path, and whom it lets pass.
func (t *tracer) leads(r *route.Route, path []byte) {
	if t.routed(r, path); r.Closed == "" {
		t.guards(r, path)
	}
}

// guards tells whom a route lets pass: where a client is, what it knows and which certificate it
// has is not known here.
func (t *tracer) guards(r *route.Route, path []byte) {
	f := r.Filters
	if f == nil {
		return
	}
	var asks, one []string // of which all count, and of which one may be enough
	if f.Clients.Guards() {
		asks = append(asks, "who has a certificate as auth-tls-* say")
	}
	if a := f.Access; a != nil && len(a.Allow)+len(a.Deny) > 0 {
		one = append(one, "who comes from "+places(a.Allow, a.Deny))
	}
	if f.Basic != nil {
		one = append(one, "who has a password of auth-secret")
	}
	if e := f.External; e != nil && !e.Spares(path, r.Path) {
		by, fixed := e.URL.Text()
		if !fixed {
			by = "the service of auth-url"
		}
		one = append(one, "whom "+by+" lets pass")
	}
	if f.Limits != nil {
		asks = append(asks, "who asks seldom enough, as limit-* say")
	}
	if f.SatisfyAny && len(one) > 1 {
		one = []string{strings.Join(one, ", or ")}
	}
	if asks = append(asks, one...); len(asks) > 0 {
		t.works("guards", "Ingress %s lets pass %s; what follows holds for those", r.Owner.Key, strings.Join(asks, ", and "))
	}
}

// places are those from which clients pass.
func places(allow, deny []netip.Prefix) string {
	text := "anywhere"
	if len(allow) > 0 {
		text = names(textsOf(allow), 5)
	}
	if len(deny) > 0 {
		text += " but not " + names(textsOf(deny), 5)
	}
	return text
}

// replaced says what stands in for a backend that answers 503; empty: nothing does.
func (t *tracer) replaced(r *route.Route) string {
	page := r.Errors
	switch {
	case page == nil:
		return ""
	case page.Standby >= 0:
		return fmt.Sprintf("; in its place Service %s answers, by default-backend", t.Routes.Backends[page.Standby].Service)
	case page.Replaces(503) && page.Backend >= 0:
		return fmt.Sprintf("; in its place Service %s answers, by custom-http-errors", t.Routes.Backends[page.Backend].Service)
	}
	return ""
}
