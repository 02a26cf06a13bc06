package upstream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// kept is a body that can be read again.
type kept struct{ *strings.Reader }

func (k kept) Rewind() bool {
	_, err := k.Seek(0, io.SeekStart)
	return err == nil
}

func (kept) Close() error { return nil }

// A body that was gathered goes to the next endpoint from its beginning, however far
// the one before had read it. One that was not is gone.
func TestKeptBodyIsSentAgain(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 40_000)
	diesAfter := func(n int64) func(net.Conn, *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			if req, err := http.ReadRequest(r); err == nil {
				io.CopyN(io.Discard, req.Body, n)
			}
		}
	}
	refuses := func(c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			io.WriteString(c, "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno")
			io.Copy(io.Discard, r)
		}
	}
	echoes := func(c net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			text, err := io.ReadAll(req.Body)
			if err == nil && string(text) == body {
				io.WriteString(c, fine)
			}
		}
	}
	for _, c := range []struct {
		name, method string
		first        func(net.Conn, *bufio.Reader)
		rules        exchange.Forwarding
		streamed     bool
		status       int
	}{
		{"dies at once", "PUT", diesAfter(0), exchange.Forwarding{Gather: true}, false, 200},
		{"dies half-way", "PUT", diesAfter(300_000), exchange.Forwarding{Gather: true}, false, 200},
		{"dies when it has all", "PUT", diesAfter(640_000), exchange.Forwarding{Gather: true}, false, 200},
		{"not idempotent", "POST", diesAfter(300_000), exchange.Forwarding{Gather: true}, false, 502},
		{"not idempotent, on request", "POST", diesAfter(300_000), exchange.Forwarding{Gather: true, Next: exchange.NextError | exchange.NextNonIdempotent}, false, 200},
		{"passed on", "PUT", refuses, exchange.Forwarding{Gather: true, Next: exchange.NextError | exchange.Next503}, false, 200},
		{"streamed", "PUT", diesAfter(300_000), exchange.Forwarding{Gather: true, Next: exchange.NextError | exchange.NextNonIdempotent}, true, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad, good := play(t, c.first), play(t, echoes)
			_, b := newEngine(t, upstream.Options{})
			b.SetEndpoints(endpoints(bad.addr, good.addr))
			worst := 0
			for range 2 { // one begins at each endpoint
				ex := &exchange.Exchange{}
				request(ex, c.method, "/")
				ex.Request.Body, ex.Request.Length = kept{strings.NewReader(body)}, int64(len(body))
				if c.streamed {
					ex.Request.Body = io.NopCloser(strings.NewReader(body))
				}
				ex.Request.Forwarding = &c.rules
				b.Forward(ex)
				worst = max(worst, ex.Response.Status)
				if ex.Response.Body != nil {
					ex.Response.Body.Close()
				}
				if ex.Response.Close && !c.streamed {
					t.Error("the client's connection is to end, though its body has been read")
				}
			}
			if worst != c.status {
				t.Errorf("status %d, want %d", worst, c.status)
			}
		})
	}
}
