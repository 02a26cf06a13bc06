package upstream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// What a route says of timeouts and further tries is obeyed.
func TestForwardingOfARoute(t *testing.T) {
	answer := func(status string) func(net.Conn, *bufio.Reader) {
		return say("HTTP/1.1 " + status + "\r\nContent-Length: 2\r\n\r\nno")
	}
	silent := func(c net.Conn, r *bufio.Reader) { io.Copy(io.Discard, r) }
	dies := func(c net.Conn, r *bufio.Reader) { http.ReadRequest(r) }
	halfway := func(c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le")
	}
	everything := exchange.NextError | exchange.NextTimeout | exchange.NextInvalid | exchange.Next403 | exchange.Next404 | exchange.Next429 |
		exchange.Next500 | exchange.Next502 | exchange.Next503 | exchange.Next504
	for _, c := range []struct {
		name         string
		first        func(net.Conn, *bufio.Reader)
		method, body string
		rules        exchange.Forwarding
		status       int
	}{
		{"503 is an answer", answer("503 Oops"), "GET", "", exchange.Forwarding{}, 503},
		{"503 is passed on", answer("503 Oops"), "GET", "", exchange.Forwarding{Next: exchange.Next503}, 200},
		{"404 is none of those", answer("404 Oops"), "GET", "", exchange.Forwarding{Next: exchange.Next503 | exchange.Next500}, 404},
		{"404", answer("404 Oops"), "GET", "", exchange.Forwarding{Next: everything}, 200},
		{"one try", answer("503 Oops"), "GET", "", exchange.Forwarding{Next: everything, Tries: 1}, 503},
		{"POST", answer("502 Oops"), "POST", "body", exchange.Forwarding{Next: everything}, 502},
		{"POST, on request", answer("502 Oops"), "POST", "body", exchange.Forwarding{Next: everything | exchange.NextNonIdempotent}, 200},
		{"off", dies, "GET", "", exchange.Forwarding{Next: exchange.NextOff}, 502},
		{"error", dies, "GET", "", exchange.Forwarding{}, 200},
		{"error in the head", halfway, "GET", "", exchange.Forwarding{}, 200},
		{"error in the head of a POST", halfway, "POST", "body", exchange.Forwarding{}, 502},
		{"error, but other reasons alone", dies, "GET", "", exchange.Forwarding{Next: everything &^ exchange.NextError}, 502},
		{"error, POST on request", dies, "POST", "body", exchange.Forwarding{Next: exchange.NextError | exchange.NextNonIdempotent}, 200},
		{"timeout", silent, "GET", "", exchange.Forwarding{ReadTimeout: 50 * time.Millisecond}, 504},
		{"timeout, passed on", silent, "GET", "", exchange.Forwarding{ReadTimeout: 50 * time.Millisecond, Next: exchange.NextTimeout}, 200},
		{"time for tries", silent, "GET", "",
			exchange.Forwarding{ReadTimeout: 50 * time.Millisecond, Next: exchange.NextTimeout, TriesTimeout: 10 * time.Millisecond}, 504},
		{"invalid", say("nonsense\r\n\r\n"), "GET", "", exchange.Forwarding{}, 502},
		{"invalid, passed on", say("nonsense\r\n\r\n"), "GET", "", exchange.Forwarding{Next: exchange.NextInvalid}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad, good := play(t, c.first), play(t, say(fine))
			_, b := newEngine(t, upstream.Options{})
			b.SetEndpoints(endpoints(bad.addr, good.addr))
			worst := 0
			for range 2 { // one begins at each endpoint
				ex := &exchange.Exchange{}
				request(ex, c.method, "/")
				if c.body != "" {
					ex.Request.Body, ex.Request.Length = inMemory(c.body), int64(len(c.body))
				}
				ex.Request.Forwarding = &c.rules
				b.Forward(ex)
				worst = max(worst, ex.Response.Status)
				if ex.Response.Body != nil {
					text, _ := io.ReadAll(ex.Response.Body)
					if ex.Response.Status == 200 && string(text) != "fine" {
						t.Errorf("the body is %q", text)
					}
					ex.Response.Body.Close()
				}
			}
			if worst != c.status {
				t.Errorf("status %d, want %d", worst, c.status)
			}
		})
	}
	t.Run("a kept connection that dies is no try", func(t *testing.T) {
		_, b := newEngine(t, upstream.Options{})
		b.SetEndpoints(endpoints(play(t, diesOnSecond, say(fine)).addr))
		for n, method := range []string{"GET", "GET", "POST"} {
			ex := &exchange.Exchange{}
			request(ex, method, "/")
			ex.Request.Forwarding = &exchange.Forwarding{Tries: 1}
			b.Forward(ex)
			if ex.Response.Status != 200 {
				t.Errorf("request %d: %d, want 200", n+1, ex.Response.Status)
			}
			io.Copy(io.Discard, ex.Response.Body)
			ex.Response.Body.Close()
		}
	})
	t.Run("nobody answers better", func(t *testing.T) {
		x, y := play(t, answer("503 x")), play(t, answer("503 y"))
		_, b := newEngine(t, upstream.Options{})
		b.SetEndpoints(endpoints(x.addr, y.addr))
		ex := &exchange.Exchange{}
		request(ex, "GET", "/")
		ex.Request.Forwarding = &exchange.Forwarding{Next: everything}
		b.Forward(ex)
		text, _ := io.ReadAll(ex.Response.Body)
		ex.Response.Body.Close()
		if ex.Response.Status != 503 || string(text) != "no" {
			t.Errorf("got %d %q, want the last answer", ex.Response.Status, text)
		}
	})
}
