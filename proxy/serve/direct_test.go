package serve

import (
	"bufio"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestSimple(t *testing.T) {
	const host = "Host: a.example:80\r\n"
	for head, want := range map[string]bool{
		"GET / HTTP/1.1\r\n" + host + "\r\n":                                 true,
		"HEAD /a?b=c HTTP/1.1\r\nX: y\r\nhost:a\r\n\r\n":                     true,
		"GET / HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n":            true,
		"GET / HTTP/1.1\r\n" + host + "Cookies: a=b\r\nTE: trailers\r\n\r\n": true,
		"GET / HTTP/1.1\r\n" + host + "X: y\n\r\n":                           true,
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
		"GET / HTTP/1.1\r\n" + host + "X: y\r\n folded\r\n\r\n":              false,
		"GET / HTTP/1.1\r\n" + host + ": y\r\n\r\n":                          false,
		"GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n":                     false,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                   false,
	} {
		size, got := simple([]byte(head + "rest"))
		if got != want || got && size != len(head) {
			t.Errorf("%q: %d, %v", head, size, got)
		}
	}
}

// What simple takes for a simple request has no body to fasthttp either, nor anything
// else that it would answer before its handler.
func FuzzSimple(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", "HEAD /%2f?a#b HTTP/1.1\r\nHost: a:1\r\nX:\n\n\r\n", "GET /a://b HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello", "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nA:b\n\n\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		size, ok := simple(b)
		if !ok || len(b) > 4<<10 {
			return
		}
		in := bufio.NewReaderSize(strings.NewReader(string(b)), 8<<10)
		in.Peek(len(b))
		var r fasthttp.Request
		if r.Header.Read(in) != nil || len(b)-in.Buffered() != size {
			return // which is fasthttp's business
		}
		var rc requestContext
		switch h := &r.Header; {
		case !h.IsHTTP11() || !h.IsGet() && !h.IsHead():
			t.Errorf("%q is a %q of %q", b, h.Method(), h.Protocol())
		case new(fasthttp.URI).Parse(h.Host(), h.RequestURI()) != nil:
			t.Errorf("%q has a URI that is none", b)
		case r.MayContinue():
			t.Errorf("%q waits to be told to go on", b)
		case rc.readFields(h.RawHeaders()) != "": // and is refused
		case len(h.Peek("Content-Length"))+len(h.Peek("Transfer-Encoding"))+len(h.Peek("Upgrade"))+len(h.Peek("Expect")) > 0:
			t.Errorf("%q is not simple", b)
		}
	})
}
