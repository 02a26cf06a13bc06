package serve

import (
	"errors"
	"io"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

// serverName is what a response says that came without a Server field.
const serverName = "quayside"

// respond hands the response to fasthttp, which writes it when the handler has
// returned. It reports whether the passage is over; a stream is not.
func (p *passage) respond() (done bool) {
	ex, resp := &p.ex, &p.ctx.Response
	if ex.Response.Status == exchange.StatusClientGone {
		p.client.Conn.Close()
		return p.closeBody()
	}
	if ex.Response.Upgraded != nil {
		return p.upgrade()
	}
	body := ex.Response.Body
	if body != nil && ex.Response.Length < 0 && !p.ctx.Request.Header.IsHTTP11() {
		if whole, ok := body.(exchange.Whole); !ok || !isWhole(whole) {
			return p.untilClose()
		}
	}
	p.writeHead(resp)
	switch {
	case p.ctx.IsHead():
		resp.SkipBody = true
		if n := int(ex.Response.Length); n >= 0 {
			resp.Header.SetContentLength(n)
		}
	case body == nil:
		resp.SetBody(ex.Response.Text)
	default:
		return p.writeBody(body)
	}
	return p.closeBody()
}

func isWhole(w exchange.Whole) bool {
	_, whole := w.Whole()
	return whole
}

// writeHead copies status and fields.
func (p *passage) writeHead(resp *fasthttp.Response) {
	r := &p.ex.Response
	resp.SetStatusCode(r.Status)
	resp.Header.DisableNormalizing()
	for _, f := range r.Header.Fields() {
		resp.Header.AddBytesKV(f.Name, f.Value)
	}
	if len(resp.Header.Server()) == 0 {
		resp.Header.SetServer(serverName)
	}
	if r.Close {
		resp.Header.SetConnectionClose()
	}
}

// writeBody copies a body that is in memory, so that the upstream's buffers are
// free at once, and leaves any other to be streamed.
func (p *passage) writeBody(body io.ReadCloser) (done bool) {
	ex, resp := &p.ex, &p.ctx.Response
	if w, ok := body.(exchange.Whole); ok {
		so, whole := w.Whole()
		switch {
		case whole && len(ex.Response.Trailer.Header.Fields()) > 0 && p.sendsTrailer():
			ex.Response.Length = -1
		case whole:
			resp.SetBody(so)
			return p.closeBody()
		}
		// With nothing to show yet, the head must not wait for the body.
		resp.ImmediateHeaderFlush = len(so) == 0
	}
	if ex.Response.Length < 0 && p.sendsTrailer() {
		resp.Header.AddTrailerBytes(ex.Response.Trailer.Announced) // forbidden names are left out
	}
	resp.SetBodyStream((*responseBody)(p), int(ex.Response.Length))
	return false
}

// sendsTrailer reports whether what comes behind the response's body is passed
// on: to who asked for it, or was told to expect it.
func (p *passage) sendsTrailer() bool {
	return p.ctx.Request.Header.IsHTTP11() && (p.ex.Request.TakesTrailers || p.ex.Response.Trailer.Announced != nil)
}

// addTrailer hands the trailer, known by now, to fasthttp, which writes it when
// the body has ended.
func (p *passage) addTrailer() {
	h := &p.ctx.Response.Header
	if p.ex.Response.Length >= 0 || !p.sendsTrailer() {
		return
	}
	h.SetTrailerBytes(nil) // what was announced need not have come
	for _, f := range p.ex.Response.Trailer.Header.Fields() {
		if h.AddTrailerBytes(f.Name) == nil {
			h.SetBytesKV(f.Name, f.Value)
		}
	}
}

func (p *passage) closeBody() bool {
	if b := p.ex.Response.Body; b != nil {
		p.ex.Response.Body = nil
		b.Close()
	}
	return true
}

// responseBody is a passage while its response is streamed.
type responseBody passage

// Read implements io.Reader.
func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ex.Response.Body.Read(p)
	switch {
	case err == io.EOF:
		(*passage)(b).addTrailer()
	case err != nil:
		b.series.broke()
	}
	return n, err
}

// WriteTo implements io.WriterTo.
func (b *responseBody) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, b.ex.Response.Body)
	if err != nil {
		b.series.broke()
	} else {
		(*passage)(b).addTrailer()
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
	p := (*passage)(b)
	p.closeBody()
	p.finish()
	return nil
}

// untilClose answers an HTTP/1.0 client with a body of unknown length, which
// ends with the connection. fasthttp would use chunks, which such a client does
// not know, so the connection is taken over.
func (p *passage) untilClose() (done bool) {
	p.writeHead(&p.ctx.Response)
	p.ctx.Response.Header.SetConnectionClose()
	p.ctx.Response.Header.SetNoDefaultContentType(true)
	head := p.ctx.Response.Header.Header()
	conn := p.conn
	p.ctx.HijackSetNoResponse(true)
	p.ctx.Hijack(func(net.Conn) {
		_, err := conn.Write(head)
		if err == nil && !p.ctx.IsHead() {
			_, err = io.Copy(conn, p.ex.Response.Body)
		}
		if err != nil {
			p.client.abort()
		}
		p.closeBody()
		p.finish()
		conn.Close()
	})
	return false
}

// upgrade answers 101 and hands the connection over.
func (p *passage) upgrade() (done bool) {
	resp := &p.ctx.Response
	p.writeHead(resp)
	resp.Header.Set("Connection", "Upgrade")
	conn, client, open := p.conn, p.client, p.ex.Response.Upgraded
	body := p.ex.Response.Body
	client.abandon = func() {
		if body != nil {
			body.Close()
		}
	}
	p.ex.Response.Body = nil
	p.ctx.Hijack(func(c net.Conn) {
		client.abandon = nil
		client.tunnel.Store(true)
		open(&tunnel{Reader: c, connection: conn})
		conn.Close()
	})
	return true
}

// tunnel is a connection that was upgraded: what fasthttp has read ahead comes
// first, and closing closes.
type tunnel struct {
	io.Reader
	connection
}

// Read implements io.Reader.
func (t *tunnel) Read(p []byte) (int, error) { return t.Reader.Read(p) }

// refuse answers what fasthttp could not parse.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	c, _ := ctx.Conn().(connection)
	if len(ctx.Request.Header.RawHeaders()) == 0 && c != nil && isSilent(err) {
		c.base().Conn.Close() // it was opened in advance and never used
		return
	}
	status, text := 400, "400 Bad Request: the request is malformed"
	var timeout net.Error
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		status, text = 431, "431 Request Header Fields Too Large: the limit is "+strconv.Itoa(s.options.HeadSize)+" bytes"
	case errors.As(err, &timeout) && timeout.Timeout():
		status, text = 408, "408 Request Timeout: the request did not arrive in time"
	}
	ctx.Response.Reset()
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString(text + "\n")
	ctx.Response.Header.SetServer(serverName)
	s.metrics.unrouted.observe(status, 0)
	if c != nil {
		c.base().linger = true
	}
}

// isSilent reports whether err is a timeout before the first byte of a request;
// later ones come wrapped.
func isSilent(err error) bool {
	op, ok := err.(*net.OpError)
	return ok && op.Timeout()
}
