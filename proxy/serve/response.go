package serve

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

// serverName is what a response says that came without a Server field.
const serverName = "quayside"

// respond hands the response to fasthttp, which writes it when the handler has
// returned. It reports whether the request is over; a stream is not.
func (rc *requestContext) respond() (done bool) {
	ex, resp := &rc.ex, &rc.ctx.Response
	if ex.Response.Status == exchange.StatusClientGone || ex.Response.Close && misspoken(rc.conn) {
		rc.client.drop()
		return rc.closeBody()
	}
	if ex.Response.Upgraded != nil {
		return rc.upgrade()
	}
	if rc.client.out != nil && rc.compose(rc.client.out) {
		rc.client.composed = true
		rc.client.last.Store(ex.Response.Close)
		return rc.closeBody()
	}
	body := ex.Response.Body
	if body != nil && ex.Response.Length < 0 && !rc.head.http11 {
		if _, whole := bodyInMemory(body); !whole {
			return rc.untilClose()
		}
	}
	rc.writeHead(resp)
	switch {
	case rc.head.bodiless:
		resp.SkipBody = true
		if n := int(ex.Response.Length); n >= 0 {
			resp.Header.SetContentLength(n)
		}
	case body == nil:
		resp.SetBody(ex.Response.Text)
		ex.Response.Sent = int64(len(ex.Response.Text))
	case !rc.writeBody(body):
		return false
	}
	if ex.Response.Close {
		rc.client.last.Store(true)
	}
	return rc.closeBody()
}

// writeHead copies status and fields.
func (rc *requestContext) writeHead(resp *fasthttp.Response) {
	r := &rc.ex.Response
	resp.SetStatusCode(r.Status)
	resp.Header.DisableNormalizing()
	for _, f := range r.Header.Fields() {
		resp.Header.AddBytesKV(f.Name, f.Value)
	}
	if len(resp.Header.Server()) == 0 && !r.Unnamed {
		resp.Header.SetServer(serverName)
	}
	if r.Close {
		resp.Header.SetConnectionClose()
	}
}

// writeBody copies a body that is in memory, so that the upstream's buffers are
// free at once, and leaves any other to be streamed.
func (rc *requestContext) writeBody(body io.ReadCloser) (done bool) {
	ex, resp := &rc.ex, &rc.ctx.Response
	if w, ok := body.(exchange.Whole); ok {
		so, whole := w.Whole()
		switch {
		case whole && len(ex.Response.Trailer.Header.Fields()) > 0 && rc.sendsTrailer():
			ex.Response.Length = -1
		case whole:
			resp.SetBody(so)
			ex.Response.Sent = int64(len(so))
			return rc.closeBody()
		}
		// With nothing to show yet, the head must not wait for the body.
		resp.ImmediateHeaderFlush = len(so) == 0
	}
	if ex.Response.Length < 0 && rc.sendsTrailer() {
		resp.Header.AddTrailerBytes(ex.Response.Trailer.Announced) // forbidden names are left out
	}
	resp.SetBodyStream((*responseBody)(rc), int(ex.Response.Length))
	return false
}

// sendsTrailer reports whether what comes behind the response's body is passed
// on: to who asked for it, or was told to expect it.
func (rc *requestContext) sendsTrailer() bool {
	return rc.head.http11 && (rc.ex.Request.TakesTrailers || rc.ex.Response.Trailer.Announced != nil)
}

// addTrailer hands the trailer, known by now, to fasthttp, which writes it when
// the body has ended.
func (rc *requestContext) addTrailer() {
	h := &rc.ctx.Response.Header
	if rc.ex.Response.Length >= 0 || !rc.sendsTrailer() {
		return
	}
	h.SetTrailerBytes(nil) // what was announced need not have come
	for _, f := range rc.ex.Response.Trailer.Header.Fields() {
		if h.AddTrailerBytes(f.Name) == nil {
			h.SetBytesKV(f.Name, f.Value)
		}
	}
}

func (rc *requestContext) closeBody() bool {
	if b := rc.ex.Response.Body; b != nil {
		rc.ex.Response.Body = nil
		b.Close()
	}
	return true
}

// responseBody is a requestContext while its response is streamed.
type responseBody requestContext

// Read implements io.Reader.
func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ex.Response.Body.Read(p)
	b.ex.Response.Sent += int64(n)
	switch {
	case err == io.EOF:
		(*requestContext)(b).addTrailer()
	case err != nil:
		b.broken = true
	}
	return n, err
}

// WriteTo implements io.WriterTo.
func (b *responseBody) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, b.ex.Response.Body)
	b.ex.Response.Sent += n
	if err != nil {
		b.broken = true
	} else {
		(*requestContext)(b).addTrailer()
	}
	return n, err
}

// SupportsBodyWriteTo lets fasthttp use WriteTo.
func (b *responseBody) SupportsBodyWriteTo() bool {
	_, ok := b.ex.Response.Body.(io.WriterTo)
	return ok
}

// Close implements io.Closer. fasthttp calls it once, when the last byte has
// been written or could not be.
func (b *responseBody) Close() error {
	rc := (*requestContext)(b)
	rc.closeBody()
	rc.finish()
	return nil
}

// untilClose answers an HTTP/1.0 client with a body of unknown length, which
// ends with the connection. fasthttp would use chunks, which such a client does
// not know, so the connection is taken over.
func (rc *requestContext) untilClose() (done bool) {
	rc.writeHead(&rc.ctx.Response)
	rc.ctx.Response.Header.SetConnectionClose()
	rc.ctx.Response.Header.SetNoDefaultContentType(true)
	head := rc.ctx.Response.Header.Header()
	conn := rc.conn
	rc.ctx.HijackSetNoResponse(true)
	rc.ctx.Hijack(func(net.Conn) {
		_, err := conn.Write(head)
		if err == nil && !rc.head.bodiless {
			rc.ex.Response.Sent, err = io.Copy(conn, rc.ex.Response.Body)
		}
		if err != nil {
			rc.client.abort()
		}
		rc.closeBody()
		rc.finish()
		conn.Close()
	})
	return false
}

// upgrade answers 101 and hands the connection over.
func (rc *requestContext) upgrade() (done bool) {
	resp := &rc.ctx.Response
	rc.writeHead(resp)
	resp.Header.Set("Connection", "Upgrade")
	conn, client, open := rc.conn, rc.client, rc.ex.Response.Upgraded
	body := rc.ex.Response.Body
	client.abandon = func() {
		if body != nil {
			body.Close()
		}
	}
	rc.ex.Response.Body = nil
	rc.ctx.Hijack(func(c net.Conn) {
		client.abandon = nil
		client.tunnel.Store(true)
		t := &tunnel{ahead: client.readAhead(c), connection: conn}
		client.handOver = func() {
			open(t)
			conn.Close()
		}
	})
	return true
}

// refuse answers what fasthttp could not parse.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	c, _ := ctx.Conn().(connection)
	if c != nil && c.base().failed {
		return // fasthttp reads on after a handshake that failed
	}
	if c != nil && !c.base().in.heard && isSilent(err) {
		c.base().Conn.Close() // it was opened in advance and never used
		return
	}
	status, text := 400, "400 Bad Request: the request is malformed"
	var timeout net.Error
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		status, text = 431, "431 Request Header Fields Too Large: the limit is "+strconv.Itoa(s.limits.Load().HeadSize)+" bytes"
	case errors.As(err, &timeout) && timeout.Timeout():
		status, text = 408, "408 Request Timeout: the request did not arrive in time"
	}
	var rc *requestContext
	if c != nil && c.base().admitted != nil { // what was to come is its body
		rc, c.base().admitted = c.base().admitted, nil
	} else {
		rc, _ = s.contexts.Get().(*requestContext)
		rc.ctx = ctx
	}
	rc.identify(c)
	rc.ex.Answer(status, text+"\n")
	rc.ex.Response.Close = true
	if !rc.admitted {
		s.options.Handler.Handle(&rc.ex)
	}
	if misspoken(c) {
		c.base().Conn.Close()
		rc.finish()
		return
	}
	ctx.Response.Reset()
	rc.writeHead(&ctx.Response)
	ctx.Response.SetBody(rc.ex.Response.Text)
	rc.ex.Response.Sent = int64(len(rc.ex.Response.Text))
	rc.finish()
	if c != nil {
		c.base().linger = true
	}
}

// answerPlain tells a client that speaks HTTP where TLS is spoken.
func (s *Server) answerPlain(c *client) {
	rc, _ := s.contexts.Get().(*requestContext)
	rc.identify(c)
	rc.ex.Answer(400, "400 Bad Request: this port speaks TLS; use https\n")
	s.options.Handler.Handle(&rc.ex)
	text := rc.ex.Response.Text
	fmt.Fprintf(c, "HTTP/1.1 400 Bad Request\r\nServer: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		serverName, len(text), text)
	rc.ex.Response.Sent = int64(len(text))
	rc.finish()
	c.linger = true
}

// identify says of a request that was not read who sent it; c is nil where that is
// unknown.
func (rc *requestContext) identify(c connection) {
	if c != nil {
		r := &rc.ex.Request
		r.Client, r.TLS = netip.AddrPortFrom(c.base().identify(), 0), c.base().secret
		r.Port = c.base().port
	}
}

// isSilent reports whether err is a timeout in the first read of a request's head
// or body; others come wrapped.
func isSilent(err error) bool {
	op, ok := err.(*net.OpError)
	return ok && op.Timeout()
}
