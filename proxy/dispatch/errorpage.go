package dispatch

import (
	"bytes"
	"strconv"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// emptiable is what a Forwarder may implement that can say beforehand that it has
// nobody to ask.
type emptiable interface{ Empty() bool }

// empty reports whether the backend with an index says that it has nobody to ask.
func (r *routing) empty(backend int) bool {
	if backend < 0 || backend >= len(r.backends) {
		return false
	}
	b, ok := r.backends[backend].(emptiable)
	return ok && b.Empty()
}

// lost reports whether there is nobody to ask.
func (r *routing) lost(backend int) bool { return backend < 0 || r.empty(backend) }

// forwardOr asks the backend with an index, or who stands in for it. Guards have
// let the request pass by then: what they refuse, nobody else answers.
func (r *routing) forwardOr(ex *exchange.Exchange, rt *route.Route, backend int) {
	page := rt.Errors
	switch {
	case rt.NoRule && r.lost(backend):
		ex.Answer(404, noRule)
	case page != nil && page.Standby >= 0 && r.lost(backend):
		r.tell(ex, rt, 503)
		r.forward(ex, page.Standby)
		return
	default:
		r.forward(ex, backend)
	}
	if page == nil || !page.Replaces(ex.Response.Status) || page.Shared && r.empty(page.Backend) {
		return
	}
	status := ex.Response.Status
	if b := ex.Response.Body; b != nil {
		b.Close()
	}
	unread := ex.Response.Close
	ex.Answer(status, "") // whatever the backend said is forgotten
	was := ex.Request
	req := &ex.Request
	r.tell(ex, rt, status)
	req.Host = req.BestHost() // upstream-vhost is for the backend
	req.Target, req.Body, req.Length, req.Upgrade = rootOf(req.Target), nil, 0, nil
	if string(req.Method) != "HEAD" {
		req.Method = []byte("GET") // the body is gone
	}
	ex.Response.Header.Del("Content-Type")
	ex.Response.Fault = 0
	r.forward(ex, page.Backend)
	req.Method, req.Host, req.Target, req.Body, req.Length, req.Upgrade = was.Method, was.Host, was.Target, was.Body, was.Length, was.Upgrade
	ex.Response.Close = ex.Response.Close || unread
}

// rootOf is "/" with the query of a target.
func rootOf(target []byte) []byte {
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		return append([]byte{'/'}, target[i:]...)
	}
	return []byte{'/'}
}

// tell lets who stands in know what for, in the fields of ingress-nginx.
func (r *routing) tell(ex *exchange.Exchange, rt *route.Route, status int) {
	h := &ex.Request.Header
	h.Set("X-Code", strconv.Itoa(status))
	if accept := h.Get("Accept"); accept != nil {
		h.SetBytes("X-Format", accept)
	}
	h.SetBytes("X-Original-URI", ex.Request.Asked.Target)
	h.Set("X-Namespace", rt.Owner.Namespace)
	h.Set("X-Ingress-Name", rt.Owner.Name)
	if rt.NoRule { // it stands in for nobody
		return
	}
	h.Set("X-Service-Name", rt.Service.Name)
	port := rt.Port
	if rt.Backend >= 0 {
		port = r.table.Backends[rt.Backend].Port.String()
	}
	h.Set("X-Service-Port", port)
}
