package serve

import (
	"bufio"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

// compose writes a response that is in memory, head and body, without the detour over
// fasthttp's. It reports false, and has written nothing, for one that needs more: a
// trailer, or a field that is about framing.
func (rc *requestContext) compose(w *bufio.Writer) bool {
	r := &rc.ex.Response
	body, whole := r.Text, true
	if r.Body != nil {
		if body, whole = bodyInMemory(r.Body); len(r.Trailer.Header.Fields()) > 0 {
			return false
		}
	}
	if !whole || r.Status < 200 || r.Status == 204 || r.Status == 304 || rc.head.bodiless {
		return false
	}
	named := r.Unnamed // what serves it, or that nobody says so
	for _, f := range r.Header.Fields() {
		if !exchange.IsToken(f.Name) || !exchange.IsFieldValue(f.Value) || framesMessage(f.Name) {
			return false
		}
		named = named || exchange.EqualFold(f.Name, "server")
	}
	b := append(w.AvailableBuffer(), "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(r.Status), 10)
	b = append(append(b, ' '), fasthttp.StatusMessage(r.Status)...)
	b = append(b, "\r\n"...)
	for _, f := range r.Header.Fields() {
		if !exchange.EqualFold(f.Name, "date") {
			b = append(append(b, f.Name...), ": "...)
			b = append(append(b, f.Value...), "\r\n"...)
		}
	}
	if !named {
		b = append(b, "Server: "+serverName+"\r\n"...)
	}
	b = append(append(b, "Date: "...), rc.server.date.at(rc.received)...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	if r.Close {
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(b, "\r\n\r\n"...)
	w.Write(b)
	if _, err := w.Write(body); err != nil {
		rc.broken = true // Flush tells, too
	}
	r.Sent = int64(len(body))
	return true
}

// bodyInMemory returns all of a body that is.
func bodyInMemory(body any) ([]byte, bool) {
	if w, ok := body.(exchange.Whole); ok {
		return w.Whole()
	}
	return nil, false
}

// framesMessage reports whether a field says where a message ends, or its connection.
func framesMessage(name []byte) bool {
	switch len(name) {
	case len("Trailer"):
		return exchange.EqualFold(name, "trailer")
	case len("Connection"):
		return exchange.EqualFold(name, "connection")
	case len("Content-Length"):
		return exchange.EqualFold(name, "content-length")
	case len("Transfer-Encoding"):
		return exchange.EqualFold(name, "transfer-encoding")
	}
	return false
}

// date is the value of the Date field, made once a second.
type date struct {
	last atomic.Pointer[dated]
}

type dated struct {
	second int64
	text   []byte
}

func (d *date) at(now time.Time) []byte {
	second := now.Unix()
	if last := d.last.Load(); last != nil && last.second == second {
		return last.text
	}
	made := &dated{second, fasthttp.AppendHTTPDate(nil, now)}
	d.last.Store(made)
	return made.text
}
