package serve

import (
	"bufio"
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

func TestSimple(t *testing.T) {
	const host = "Host: a.example:80\r\n"
	s := New(Options{})
	for head, want := range map[string]bool{
		"GET / HTTP/1.1\r\n" + host + "\r\n":                                 true,
		"HEAD /a?b=c HTTP/1.1\r\nX: y\r\nhost:a\r\n\r\n":                     true,
		"GET / HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n":            true,
		"GET / HTTP/1.1\r\n" + host + "Cookies: a=b\r\nTE: trailers\r\n\r\n": true,
		"GET / HTTP/1.1\r\n" + host + "X: y\n\r\n":                           false,
		"GET / HTTP/1.1\r\n" + host:                                          false, // not all of it
		"GET / HTTP/1.1\r\n" + host + "\r":                                   false,
		"GET / HTTP/1.1\n" + host + "\r\n":                                   false,
		"GET / HTTP/1.0\r\n" + host + "\r\n":                                 false,
		"POST / HTTP/1.1\r\n" + host + "\r\n":                                false,
		"get / HTTP/1.1\r\n" + host + "\r\n":                                 false,
		"GET //a HTTP/1.1\r\n" + host + "\r\n":                               false,
		"GET http://a/ HTTP/1.1\r\n" + host + "\r\n":                         false,
		"GET /a b HTTP/1.1\r\n" + host + "\r\n":                              false,
		"GET  / HTTP/1.1\r\n" + host + "\r\n":                                false,
		"GET /\x7f HTTP/1.1\r\n" + host + "\r\n":                             false,
		"GET / HTTP/1.1\r\n\r\n":                                             false,
		"GET / HTTP/1.1\r\n" + host + host + "\r\n":                          false,
		"GET / HTTP/1.1\r\nHost:\r\n\r\n":                                    false,
		"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n":                                false,
		"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n":                              false,
		"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n":                                false,
		"GET / HTTP/1.1\r\n" + host + "content-length: 0\r\n\r\n":            false,
		"GET / HTTP/1.1\r\n" + host + "TRANSFER-ENCODING: chunked\r\n\r\n":   false,
		"GET / HTTP/1.1\r\n" + host + "Expect: 100-continue\r\n\r\n":         false,
		"GET / HTTP/1.1\r\n" + host + "Upgrade: websocket\r\n\r\n":           false,
		"GET / HTTP/1.1\r\n" + host + "Trailer: X\r\n\r\n":                   false,
		"GET / HTTP/1.1\r\n" + host + "X: \x00\r\n\r\n":                      false,
		"GET / HTTP/1.1\r\n" + host + "X : y\r\n\r\n":                        false,
		"GET / HTTP/1.1\r\n" + host + "X: y\r\n folded\r\n\r\n":              false,
		"GET / HTTP/1.1\r\n" + host + ": y\r\n\r\n":                          false,
		"GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n":                     false,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                   false,
	} {
		rc, _, size := parsedBy(t, s, []byte(head+"rest"))
		if got := rc != nil; got != want || got && size != len(head) {
			t.Errorf("%q: %d, %v", head, size, got)
		}
	}
}

// parsedBy returns what comes of the request that b begins with, and its size: read by
// readSimple, and if that takes it, by fasthttp as well.
func parsedBy(t *testing.T, s *Server, b []byte) (simple, parsed *requestContext, size int) {
	c, err := newClient(&replay{}, &listener{server: s})
	if err != nil {
		t.Fatal(err)
	}
	made := func() *requestContext {
		rc := &requestContext{server: s}
		rc.came(&fasthttp.RequestCtx{}, c, time.Time{})
		return rc
	}
	simple, parsed = made(), made()
	size, simple.head.simple = simple.readSimple(bytes.Clone(b))
	if !simple.head.simple {
		return nil, nil, 0
	}
	in := bufio.NewReaderSize(bytes.NewReader(b), 8<<10)
	in.Peek(len(b))
	if err := parsed.ctx.Request.Header.Read(in); err != nil || len(b)-in.Buffered() != size {
		t.Errorf("%q has a head of %d bytes, and one of %d to fasthttp (%v)", b, size, len(b)-in.Buffered(), err)
	}
	return simple, parsed, size
}

// What readSimple takes for a simple request is the same one to fasthttp, which finds no
// body either, nor anything else that it would answer before its handler.
func FuzzSimple(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", "HEAD /%2f?a#b HTTP/1.1\r\nHost: a:1\r\nX:\n\n\r\n", "GET /a://b HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello", "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nA:b\n\n\r\n\r\n",
		"GET /a/../%zz HTTP/1.1\r\nhOST:\ta \r\nConnection: close, X\r\nX: y\r\nTE: trailers\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nCookie: \x80\xff\tb\r\nCookie:\r\n\r\n",
		"GET /\x80 HTTP/1.1\r\nHost: ..\r\nTrailer: Content-Length\r\n\r\n", "GET / HTTP/1.1\r\nProxy-Connection: close\r\nHost: a:\r\nConnection: keep-alive\r\nConnection: te\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	s := New(Options{}) // made for each input, it was most of the work
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4<<10 {
			return
		}
		simple, parsed, _ := parsedBy(t, s, b)
		if simple == nil {
			return
		}
		if a, b := simple.read(), parsed.read(); a != b || !reflect.DeepEqual(simple.hop, parsed.hop) || simple.head.line != parsed.head.line || string(simple.head.fields) != string(parsed.head.fields) {
			t.Errorf("%q %+v %+v, and to fasthttp %q %+v %+v", a, simple.hop, simple.head, b, parsed.hop, parsed.head)
		}
		if a, b := fmt.Sprintf("%q", told(&simple.ex.Request)), fmt.Sprintf("%q", told(&parsed.ex.Request)); a != b {
			t.Errorf("%s, and to fasthttp %s", a, b)
		}
		switch r := &parsed.ctx.Request; {
		case !r.Header.IsHTTP11() || !r.Header.IsGet() && !r.Header.IsHead() || r.Header.IsHead() != simple.head.bodiless:
			t.Errorf("%q is a %q of %q", b, r.Header.Method(), r.Header.Protocol())
		case new(fasthttp.URI).Parse(r.Header.Host(), r.Header.RequestURI()) != nil:
			t.Errorf("%q has a URI that is none", b)
		case r.MayContinue():
			t.Errorf("%q waits to be told to go on", b)
		case len(r.Header.Peek("Content-Length"))+len(r.Header.Peek("Transfer-Encoding"))+len(r.Header.Peek("Upgrade"))+len(r.Header.Peek("Expect")) > 0:
			t.Errorf("%q is not simple", b)
		}
	})
}

// told is what a request's head has told the exchange.
func told(r *exchange.Request) []any {
	all := []any{r.Method, r.Protocol, r.Host, r.Target, r.Path, fmt.Sprint(r.Size, r.Length, r.Body, r.TakesTrailers), r.Upgrade}
	for _, f := range r.Header.Fields() {
		all = append(all, f.Name, f.Value)
	}
	return all
}
