package serve

import (
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

// requestContext is one request on its way through the front end, from the parsed
// head to the last byte of the response. It is pooled with its memory.
type requestContext struct {
	server *Server
	ex     exchange.Exchange
	path   []byte
	body   requestBody
	passing
}

// passing is what of a requestContext only one request is concerned with.
type passing struct {
	ctx    *fasthttp.RequestCtx
	conn   connection
	client *client
	hop    exchange.Hop
	head   head
	broken bool // the response could not be written in full

	received time.Time // when the head had arrived
	admitted bool      // it was asked for its body, and the handler knows it
}

// begin returns the context of a request that fasthttp has parsed, and whose head had
// arrived at a time.
func (s *Server) begin(ctx *fasthttp.RequestCtx, received time.Time) *requestContext {
	rc, _ := s.contexts.Get().(*requestContext)
	conn, _ := ctx.Conn().(connection)
	rc.came(ctx, conn, received)
	return rc
}

// came notes by what connection a request has come, and when its head had.
func (rc *requestContext) came(ctx *fasthttp.RequestCtx, conn connection, received time.Time) {
	rc.ctx, rc.conn, rc.client, rc.received = ctx, conn, conn.base(), received
	rc.client.rests = true
	if !rc.client.asked.Load() { // a look costs less than a note
		rc.client.asked.Store(true)
	}
}

// handle is fasthttp's handler.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	var rc *requestContext
	if conn, ok := ctx.Conn().(connection); ok && conn.base().admitted != nil {
		rc, conn.base().admitted = conn.base().admitted, nil
	} else {
		rc = s.begin(ctx, ctx.Time())
	}
	rc.complete()
}

// complete has the request answered, and ends it unless that is done later.
func (rc *requestContext) complete() {
	if rc.run() {
		rc.finish()
	}
}

// run answers the request and reports whether it is answered in full. If not,
// a stream or a tunnel finishes it later.
func (rc *requestContext) run() (done bool) {
	defer rc.recover(func() {
		rc.server.options.Handler.Handle(&rc.ex)
		rc.respond()
		done = true
	})
	if rc.admitted {
		rc.body.source = rc.ctx.RequestBodyStream()
	} else {
		rc.take()
	}
	rc.server.options.Handler.Handle(&rc.ex)
	rc.keepOrClose()
	return rc.respond()
}

// take reads the request. One that is refused is answered, and it reports false.
func (rc *requestContext) take() bool {
	fault := rc.read()
	switch {
	case fault != "":
		rc.ex.Answer(400, "400 Bad Request: "+fault+"\n")
	default:
		status, why := rc.tooLarge(rc.server.limits.Load())
		if status == 0 {
			return true
		}
		rc.ex.Answer(status, why)
	}
	rc.ex.Response.Close = true
	return false
}

// recover answers 500 where we panicked. The handler recovers for itself; a panic
// that comes this far is the front end's own.
func (rc *requestContext) recover(then func()) {
	if r := recover(); r != nil {
		rc.server.options.Log.Error("a request made the front end panic", "panic", r, "stack", string(debug.Stack()))
		rc.closeBody()
		rc.ex.Answer(500, "500 Internal Server Error: the proxy failed; its log says more\n")
		rc.ex.Response.Close = true
		then()
	}
}

// finish ends the request.
func (rc *requestContext) finish() {
	if o := rc.ex.Observer; o != nil {
		rc.ex.Request.Size += rc.body.read
		o.Finished(&rc.ex, rc.broken)
		if rc.client != nil {
			rc.client.ended = rc.ex.Response.Ended
		}
	}
	rc.release()
}

// release gives the memory of a request back.
func (rc *requestContext) release() {
	rc.ex.Reset()
	rc.path, rc.body, rc.passing = rc.path[:0], requestBody{whole: rc.body.whole[:0]}, passing{}
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
	rc.client.served++
	if l := rc.server.limits.Load(); r.Upgraded == nil && (l.Idle < 0 || l.Requests > 0 && rc.client.served >= int64(l.Requests)) {
		r.Close = true
	}
	if rc.hop.Close || r.Upgraded == nil && (rc.server.draining.Load() || rc.server.leaving.Load()) {
		r.Close = true
	}
}
