package serve_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// recorder notes what the backend was asked.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.seen = append(r.seen, req.Method+" "+req.RequestURI+" "+string(body))
	r.mu.Unlock()
	io.WriteString(w, "ok")
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// Whatever two readers could cut differently is refused, and the connection with
// it: the line that could be a second request never reaches a backend.
func TestSmuggling(t *testing.T) {
	rec := &recorder{}
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, rec.ServeHTTP))
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, raw := range map[string]string{
		"CL.TE":                     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 49\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE.CL":                     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n28\r\n" + smuggled + "\r\n0\r\n\r\n",
		"TE.TE, twice":              "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled,
		"TE, listed":                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE, identity":              "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nxx" + smuggled,
		"TE, padded name":           "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE, vertical tab":          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE, quoted":                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" + smuggled,
		"TE in HTTP/1.0":            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"CL twice":                  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 37\r\n\r\n" + smuggled,
		"CL twice, alike":           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n" + smuggled,
		"CL, listed":                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 37\r\n\r\n" + smuggled,
		"CL, signed":                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n" + smuggled,
		"CL, negative":              "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n" + smuggled,
		"CL, hexadecimal":           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x0\r\n\r\n" + smuggled,
		"CL, overflowing":           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n" + smuggled,
		"CL, empty":                 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n" + smuggled,
		"folded field":              "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n" + smuggled,
		"folded first":              "POST / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n" + smuggled,
		"bare CR in a value":        "POST / HTTP/1.1\r\nHost: a\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n" + smuggled,
		"NUL in a value":            "POST / HTTP/1.1\r\nHost: a\r\nX: y\x00\r\n\r\n" + smuggled,
		"space in a name":           "POST / HTTP/1.1\r\nHost: a\r\nContent Length: 37\r\n\r\n" + smuggled,
		"no name":                   "POST / HTTP/1.1\r\nHost: a\r\n: 37\r\n\r\n" + smuggled,
		"no colon":                  "POST / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n" + smuggled,
		"two hosts":                 "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + smuggled,
		"no host":                   "GET / HTTP/1.1\r\n\r\n" + smuggled,
		"bad host":                  "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" + smuggled,
		"host with a colon":         "GET / HTTP/1.1\r\nHost: a:b:80\r\n\r\n" + smuggled,
		"host with a bracket":       "GET / HTTP/1.1\r\nHost: a[b]\r\n\r\n" + smuggled,
		"host of brackets":          "GET / HTTP/1.1\r\nHost: []:80\r\n\r\n" + smuggled,
		"host in open brackets":     "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n" + smuggled,
		"host in brackets, no IPv6": "GET / HTTP/1.1\r\nHost: [192.0.2.1]\r\n\r\n" + smuggled,
		"host in brackets, more":    "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n" + smuggled,
		"host is IPv6, bare":        "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n" + smuggled,
		"host with a zone":          "GET / HTTP/1.1\r\nHost: [fe80::1%eth0]\r\n\r\n" + smuggled,
		"bad host port":             "GET / HTTP/1.1\r\nHost: a:80x\r\n\r\n" + smuggled,
		"host with user":            "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n" + smuggled,
		"absolute form with user":   "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"chunk size overflow":       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\nx\r\n0\r\n\r\n" + smuggled,
		"LF in a chunk extension":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n" + smuggled,
		"chunk without CRLF":        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz0\r\n\r\n" + smuggled,
		"chunk size signed":         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n" + smuggled,
		"version 0.9":               "GET / HTTP/0.9\r\nHost: a\r\n\r\n" + smuggled,
		"version 1.2":               "GET / HTTP/1.2\r\nHost: a\r\n\r\n" + smuggled,
		"version 2.0":               "GET / HTTP/2.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n" + smuggled,
		"space in the target":       "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"NUL in the target":         "GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"escaped NUL in the target": "GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"above the root":            "GET /../etc HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"backslash in the target":   "GET /a\\..\\b HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"fragment in the target":    "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"fragment behind a query":   "GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"CONNECT":                   "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"TRACE":                     "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled,
		"unknown expectation":       "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 0\r\n\r\n" + smuggled,
		"not HTTP":                  "\x16\x03\x01\x02\x00\r\n\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			got := r.exchange(raw)
			if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "\r\nConnection: close\r\n") {
				t.Errorf("answered %q, want one 400 and the end of the connection", got)
			}
			if strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Errorf("answered more than once: %q", got)
			}
			for _, asked := range rec.take() {
				if strings.Contains(asked, "smuggled") {
					t.Errorf("the backend was asked %q", asked)
				}
			}
		})
	}
}

// What is legal, if unusual, is understood.
func TestUnusualButLegal(t *testing.T) {
	rec := &recorder{}
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, rec.ServeHTTP))
	for _, c := range []struct{ name, raw, want string }{
		{"absolute form", "GET http://b:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x?y "},
		{"absolute form without a path", "GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / "},
		{"absolute form with a query alone", "GET http://b?q HTTP/1.1\r\nHost: a\r\n\r\n", "GET /?q "},
		{"HTTP/1.0 without host", "GET /x HTTP/1.0\r\n\r\n", "GET /x "},
		{"IPv6 host", "GET /x HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET /x "},
		{"chunks with extensions and trailers", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n", "POST /x hello"},
		{"empty line first", "\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x "},
		{"escapes stay as they are", "GET /a%2Fb%20c//d/./e HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%2Fb%20c//d/./e "},
		{"body of a GET", "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", "GET /x hi"},
		{"100-continue", "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", "POST /x hi"},
		{"an unknown method", "PURGE /x HTTP/1.1\r\nHost: a\r\n\r\n", "PURGE /x "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.exchange(c.raw)
			if !strings.Contains(got, "HTTP/1.1 200 OK\r\n") {
				t.Errorf("answered %q", got)
			}
			if seen := rec.take(); len(seen) != 1 || seen[0] != c.want {
				t.Errorf("the backend was asked %q, want %q", seen, c.want)
			}
		})
	}
}

// A client that expects 100-continue sends the body when it has it, and only
// then. HTTP/1.0 does not know it.
func TestExpect(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	for _, c := range []struct {
		version, expect string
		told            bool
	}{
		{"1.1", "100-continue", true}, {"1.1", "100-Continue", true}, {"1.1", "100-CONTINUE", true},
		{"1.0", "100-continue", false},
	} {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		in := bufio.NewReader(conn)
		io.WriteString(conn, "POST /x HTTP/"+c.version+"\r\nHost: a\r\nExpect: "+c.expect+"\r\nContent-Length: 2\r\n\r\n")
		if c.told {
			resp, err := http.ReadResponse(in, nil)
			if err != nil || resp.StatusCode != 100 {
				t.Errorf("HTTP/%s, Expect: %s: got %v, %v before the body was sent", c.version, c.expect, resp, err)
				continue
			}
		}
		io.WriteString(conn, "hi")
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("HTTP/%s, Expect: %s: got %v, %v for a response", c.version, c.expect, resp, err)
		}
	}
}

func TestHeadTooLarge(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	got := r.exchange("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("answered %.200q", got)
	}
}

// A body that nobody read must not be taken for the next request.
func TestUnreadBodyEndsTheConnection(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, closedAddr(t))
	body := strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", 1000)
	for _, raw := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 35000\r\n\r\n" + body[:35000],
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n88b8\r\n" + body[:35000] + "\r\n0\r\n\r\n",
	} {
		got := r.exchange(raw)
		if !strings.HasPrefix(got, "HTTP/1.1 502 ") || strings.Count(got, "HTTP/1.1 ") != 1 || !strings.Contains(got, "Connection: close") {
			t.Errorf("answered %.300q", got)
		}
	}
}
