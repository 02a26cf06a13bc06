package serve

import (
	"bytes"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/route"
)

// passage is one request on its way through the front end, from the parsed head
// to the last byte of the response. It is pooled with its memory.
type passage struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	conn   connection
	client *client
	ex     exchange.Exchange
	hop    exchange.Hop
	path   []byte
	body   requestBody
	series *series
	route  *route.Route
}

// handle is fasthttp's handler.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	p, _ := s.passages.Get().(*passage)
	p.ctx = ctx
	p.conn, _ = ctx.Conn().(connection)
	p.client = p.conn.base()
	if !p.client.asked.Load() { // a look costs less than a note
		p.client.asked.Store(true)
	}
	p.series = s.metrics.unrouted
	if p.run() {
		p.finish()
	}
}

// run answers the request and reports whether it is answered in full. If not,
// a stream or a tunnel finishes the passage later.
func (p *passage) run() (done bool) {
	defer func() {
		if r := recover(); r != nil {
			p.server.metrics.panics.Add(1)
			p.server.options.Log.Error("a request made the proxy panic", "panic", r, "stack", string(debug.Stack()))
			p.ex.Answer(500, "500 Internal Server Error: the proxy failed; its log says more\n")
			p.ex.Response.Close = true
			p.respond()
			done = true
		}
	}()
	if refusal := p.read(); refusal != "" {
		p.ex.Answer(400, "400 Bad Request: "+refusal+"\n")
		p.ex.Response.Close, p.client.linger = true, true
		return p.respond()
	}
	p.answer()
	p.keepOrClose()
	return p.respond()
}

// finish ends the passage.
func (p *passage) finish() {
	took := time.Since(p.ctx.Time())
	p.series.observe(p.ex.Response.Status, took)
	if p.server.access {
		p.log(took)
	}
	p.ex.Reset()
	*p = passage{server: p.server, ex: p.ex, path: p.path[:0], body: requestBody{whole: p.body.whole[:0]}}
	p.server.passages.Put(p)
}

// log is the access log. It costs what logs cost, so it needs --log-level debug.
func (p *passage) log(took time.Duration) {
	r := &p.ex.Request
	var ingress, service string
	if p.route != nil {
		ingress, service = p.route.Ingress.String(), p.route.Service.String()
	}
	p.server.options.Log.Debug("request", "client", r.Client.Addr(), "method", string(r.Method), "host", string(r.Host),
		"target", string(r.Target), "status", p.ex.Response.Status, "took", took, "ingress", ingress, "service", service)
}

// answer finds out who answers, and asks.
func (p *passage) answer() {
	s, ex := p.server, &p.ex
	r := s.routing.Load()
	if r == nil {
		ex.Answer(503, "503 Service Unavailable: the proxy has no routes yet\n")
		return
	}
	found := r.table.Match(ex.Request.Host, ex.Request.Path)
	if found == nil {
		ex.Answer(404, "404 Not Found: no Ingress has a rule for this host and path\n")
		return
	}
	p.route = found
	p.series = r.seriesOf(found, s.metrics)
	switch {
	case found.Closed != "":
		ex.Answer(503, "503 Service Unavailable: "+found.Closed+"\n")
	case !ex.Request.TLS && found.RedirectsToTLS(ex.Request.Path) && !p.cameOverTLS():
		p.redirectToTLS()
	case found.Backend < 0 || found.Backend >= len(r.backends) || r.backends[found.Backend] == nil:
		ex.Answer(503, "503 Service Unavailable: this route leads nowhere\n")
	default:
		s.forwarded.Apply(ex, filter.Connection{
			Peer: p.client.identify(), TLS: ex.Request.TLS, Port: p.port(),
		}, [2]uint64{rand.Uint64(), rand.Uint64()})
		r.backends[found.Backend].Forward(ex)
	}
}

// cameOverTLS reports whether a trusted proxy in front of us says so; without
// this, clients of one that terminates TLS would be redirected forever.
func (p *passage) cameOverTLS() bool {
	return exchange.EqualFold(p.ex.Request.Header.Get("X-Forwarded-Proto"), "https") &&
		p.server.forwarded.Trusts(p.client.identify())
}

// redirectToTLS sends the client to the same target over TLS, on the usual port.
func (p *passage) redirectToTLS() {
	r := &p.ex.Request
	p.ex.Answer(308, "308 Permanent Redirect: use https\n")
	p.ex.Response.Header.AddParts("Location", []byte("https://"), r.Host[:hostEnd(r.Host)], r.Target)
}

// port is the one that the client thinks it speaks to. A load balancer may have
// mapped it to another, so what the client wrote comes before what we listen on.
func (p *passage) port() []byte {
	host := p.ex.Request.Host
	if end := hostEnd(host); end < len(host) {
		return host[end+1:]
	}
	if p.ex.Request.TLS {
		return p.server.httpsPort
	}
	return p.server.httpPort
}

// hostEnd is where the name in "name:port" ends.
func hostEnd(host []byte) int {
	i := bytes.LastIndexByte(host, ':')
	if i < 0 || bytes.IndexByte(host[i:], ']') >= 0 {
		return len(host)
	}
	return i
}

// keepOrClose decides whether the connection can serve another request: only if
// the client wants it to, we do, and this request's body has been read off it.
// An upgraded connection has no other request to serve.
func (p *passage) keepOrClose() {
	r := &p.ex.Response
	if !r.Close && p.ex.Request.Body != nil && !p.body.readOff() {
		r.Close = true
	}
	if r.Close {
		p.client.linger = true
	}
	if p.hop.Close || r.Upgraded == nil && (p.server.draining.Load() || p.server.leaving.Load()) {
		r.Close = true
	}
}
