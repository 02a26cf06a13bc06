package serve

import (
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

// requestContext is one request on its way through the front end, from the parsed
// head to the last byte of the response. It is pooled with its memory.
type requestContext struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	conn   connection
	client *client
	ex     exchange.Exchange
	hop    exchange.Hop
	path   []byte
	body   requestBody
	broken bool // the response could not be written in full
}

// handle is fasthttp's handler.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	rc, _ := s.contexts.Get().(*requestContext)
	rc.ctx = ctx
	rc.conn, _ = ctx.Conn().(connection)
	rc.client = rc.conn.base()
	if !rc.client.asked.Load() { // a look costs less than a note
		rc.client.asked.Store(true)
	}
	if rc.run() {
		rc.finish()
	}
}

// run answers the request and reports whether it is answered in full. If not,
// a stream or a tunnel finishes it later. The handler recovers for itself; a panic
// that comes this far is the front end's own.
func (rc *requestContext) run() (done bool) {
	defer func() {
		if r := recover(); r != nil {
			rc.server.options.Log.Error("a request made the front end panic", "panic", r, "stack", string(debug.Stack()))
			rc.closeBody()
			rc.ex.Answer(500, "500 Internal Server Error: the proxy failed; its log says more\n")
			rc.ex.Response.Close = true
			rc.server.options.Handler.Handle(&rc.ex)
			rc.respond()
			done = true
		}
	}()
	if refusal := rc.read(); refusal != "" {
		rc.ex.Answer(400, "400 Bad Request: "+refusal+"\n")
		rc.ex.Response.Close = true
	}
	rc.server.options.Handler.Handle(&rc.ex)
	rc.keepOrClose()
	return rc.respond()
}

// finish ends the request.
func (rc *requestContext) finish() {
	if o := rc.ex.Observer; o != nil {
		o.Finished(&rc.ex, rc.broken)
	}
	rc.ex.Reset()
	*rc = requestContext{server: rc.server, ex: rc.ex, path: rc.path[:0], body: requestBody{whole: rc.body.whole[:0]}}
	rc.server.contexts.Put(rc)
}

// keepOrClose decides whether the connection can serve another request: only if
// the client wants it to, we do, and this request's body has been read off it.
// An upgraded connection has no other request to serve.
func (rc *requestContext) keepOrClose() {
	r := &rc.ex.Response
	if !r.Close && rc.ex.Request.Body != nil && !rc.body.readOff() {
		r.Close = true
	}
	if r.Close {
		rc.client.linger = true
	}
	if rc.hop.Close || r.Upgraded == nil && (rc.server.draining.Load() || rc.server.leaving.Load()) {
		r.Close = true
	}
}
