package serve_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// What comes behind a response's body is passed on to who asks for it or was told
// to expect it, however the body arrives.
func TestTrailersOfResponses(t *testing.T) {
	const te = "Connection: TE\r\nTE: trailers\r\n"
	for _, c := range []struct {
		name, request, announced, body string
		want                           string // the tail of the response
		lacks                          string
	}{
		{"asked for", "GET / HTTP/1.1\r\nHost: a\r\n" + te, "", "3\r\nabc\r\n", "3\r\nabc\r\n0\r\ngrpc-status: 0\r\nX-B: 2\r\n\r\n", "Trailer"},
		{"announced", "GET / HTTP/1.1\r\nHost: a\r\n", "Trailer: grpc-status, Host, X-Never\r\n", "3\r\nabc\r\n", "0\r\ngrpc-status: 0\r\nX-B: 2\r\n\r\n", "X-Never:"},
		{"no body", "GET / HTTP/1.1\r\nHost: a\r\n" + te, "", "", "\r\n\r\n0\r\ngrpc-status: 0\r\nX-B: 2\r\n\r\n", "Content-Length"},
		{"a long body", "GET / HTTP/1.1\r\nHost: a\r\n" + te, "", "11170\r\n" + strings.Repeat("x", 70_000) + "\r\n", "x\r\n0\r\ngrpc-status: 0\r\nX-B: 2\r\n\r\n", "Content-Length"},
		{"neither", "GET / HTTP/1.1\r\nHost: a\r\n", "", "3\r\nabc\r\n", "\r\n\r\nabc", "grpc-status"},
		{"HTTP/1.0", "GET / HTTP/1.0\r\n" + te, "Trailer: grpc-status\r\n", "3\r\nabc\r\n", "\r\n\r\nabc", "grpc-status"},
		{"HEAD", "HEAD / HTTP/1.1\r\nHost: a\r\n" + te, "Trailer: grpc-status\r\n", "", "\r\n\r\n", "grpc-status:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(conn net.Conn) {
				in := bufio.NewReader(conn)
				for {
					req, _, err := readRequest(in)
					if err != nil {
						return
					}
					answer := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + c.announced + "\r\n"
					if req.Method != "HEAD" {
						answer += c.body + "0\r\ngrpc-status: 0\r\nSet-Cookie: a=b\r\nX-B: 2\r\n\r\n"
					}
					io.WriteString(conn, answer)
				}
			}))
			for range 2 { // nothing of one response is left for the next
				got := r.exchange(c.request + "\r\n")
				if !strings.HasSuffix(got, c.want) || strings.Contains(got, c.lacks) {
					t.Errorf("answered %.400q ... %q, want %q at its end and no %q", got, got[max(0, len(got)-100):], c.want, c.lacks)
				}
			}
		})
	}
}

// The trailer of a request reaches the backend.
func TestTrailersOfRequests(t *testing.T) {
	type result struct {
		te      string
		trailer http.Header
	}
	seen := make(chan result, 1)
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		seen <- result{req.Header.Get("TE"), req.Trailer}
	}))
	const chunks = "3\r\nabc\r\n0\r\nX-Sum: 12\r\nX-More: 3\r\n\r\n"
	for _, fields := range []string{"Trailer: X-Sum, X-More\r\n", "Trailer: X-Sum, X-More\r\nCookie: a=b\r\nConnection: close\r\nX-Sum: old\r\n", "Cookie: a=b\r\nTrailer: X-More, X-Sum\r\nConnection: TE\r\nTE: trailers\r\n"} {
		if got := r.exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + fields + "\r\n" + chunks); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Fatalf("%q: answered %q", fields, got)
		}
		got := <-seen
		if len(got.trailer) != 2 || got.trailer.Get("X-Sum") != "12" || got.trailer.Get("X-More") != "3" {
			t.Errorf("%q: the backend read the trailer %v", fields, got.trailer)
		}
		if wants := strings.Contains(fields, "TE: trailers"); (got.te == "trailers") != wants {
			t.Errorf("%q: the backend read TE %q", fields, got.te)
		}
	}
}
