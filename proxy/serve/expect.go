package serve

import (
	"time"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

// bodyFollows is the deadline that fasthttp asks for where a body follows the head. It
// is so far ahead that client.SetReadDeadline knows it by that.
const bodyFollows = 10_000 * time.Hour

// readHead tells fasthttp what it has to know before it waits for the body. Of
// expectations it knows one spelling of 100-continue only, and without the answer such
// a client may never send the body. HTTP/1.0 does not know the answer and would take
// it for the response.
func readHead(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if n := h.ContentLength(); n > 0 || n == -1 {
		config.ReadTimeout = bodyFollows
	}
	expect := h.Peek("Expect")
	switch {
	case len(expect) == 0:
	case !h.IsHTTP11():
		h.Del("Expect")
	case exchange.EqualFold(expect, "100-continue"):
		h.Set("Expect", "100-continue")
	}
	return config
}

// expect is asked by fasthttp before it tells a client to go on and send its body.
// A request that is refused is answered here; one that is admitted waits at its
// connection until fasthttp calls the handler.
func (s *Server) expect(ctx *fasthttp.RequestCtx) (status int) {
	gate, ok := s.options.Handler.(exchange.Admitter)
	if !ok {
		return fasthttp.StatusContinue
	}
	rc := s.begin(ctx, time.Now()) // fasthttp has not looked yet
	if rc.admit(gate) {
		rc.client.admitted = rc
		return fasthttp.StatusContinue
	}
	status = rc.ex.Response.Status
	rc.ex.Response.Close = true // the body may be coming all the same
	rc.keepOrClose()
	if rc.respond() {
		rc.finish()
	}
	return status
}

// admit reports whether the request may send its body; if not, it is answered.
func (rc *requestContext) admit(gate exchange.Admitter) (admitted bool) {
	defer rc.recover(func() { admitted = false })
	if !rc.take() {
		rc.server.options.Handler.Handle(&rc.ex)
		return false
	}
	rc.admitted = gate.Admit(&rc.ex)
	return rc.admitted
}

// abandonAdmitted ends a request whose body never came.
func (c *client) abandonAdmitted() {
	if rc := c.admitted; rc != nil {
		c.admitted = nil
		rc.broken = true
		rc.finish()
	}
}
