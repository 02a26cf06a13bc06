package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
)

// replay is a connection whose client has sent some bytes and hung up.
type replay struct {
	net.Conn
	in io.Reader
}

func (r *replay) Read(b []byte) (int, error)       { return r.in.Read(b) }
func (r *replay) Write(b []byte) (int, error)      { return len(b), nil }
func (r *replay) Close() error                     { return nil }
func (r *replay) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (r *replay) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }

// framed notes the requests that have come in full.
type framed struct {
	mu   sync.Mutex
	seen []string
}

func (f *framed) Handle(ex *exchange.Exchange) {
	if ex.Response.Status != 0 {
		return // refused
	}
	r := &ex.Request
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
	}
	if err == nil {
		f.mu.Lock()
		f.seen = append(f.seen, fmt.Sprintf("%s %s %q", r.Method, r.Target, body))
		f.mu.Unlock()
	}
	ex.Answer(200, "ok")
}

func (f *framed) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = nil
	return seen
}

// framedHere returns the requests that we find in what a client has sent.
func framedHere(t *testing.T, in io.Reader) []string {
	f := &framed{}
	s := New(Options{Handler: f})
	c, err := newClient(&replay{in: in}, &listener{server: s})
	if err != nil {
		t.Fatal(err)
	}
	s.http.ServeConn(c)
	c.Close()
	return f.take()
}

// front is a server that listens, and one of its ways to serve HTTP/1.1.
type front struct {
	framed
	addr string
}

// newFront returns one that serves in the way of listeners with or without HTTP/2.
func newFront(t testing.TB, h2c bool) *front {
	f := &front{}
	s := New(Options{Handler: f, Log: slog.New(slog.DiscardHandler), HTTP2: func(c net.Conn, _ *HTTP2Client) { c.Close() }})
	s.SetListeners([]Listener{{Address: "127.0.0.1:0", H2C: h2c}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for f.addr == "" {
		time.Sleep(time.Millisecond)
		f.addr = s.Listeners()[0].Bound
	}
	return f
}

// framedIn returns the requests that it finds in what a client sends, of which the first
// bytes come at once.
func (f *front) framedIn(t *testing.T, b []byte, first int) []string {
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	c.Write(b[:first])
	c.Write(b[first:])
	c.(*net.TCPConn).CloseWrite()
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return f.take()
}

// framedByNet returns those that net/http finds, up to the first that it refuses.
func framedByNet(b []byte) (seen []string) {
	in := bufio.NewReader(bytes.NewReader(b))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return seen
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return seen
		}
		target := r.RequestURI
		if !strings.HasPrefix(target, "/") && r.URL.Host != "" { // in absolute form
			if target = strings.TrimPrefix(target[strings.Index(target, "://")+len("://"):], r.URL.Host); !strings.HasPrefix(target, "/") {
				target = "/" + target
			}
		}
		seen = append(seen, fmt.Sprintf("%s %s %q", r.Method, target, body))
	}
}

// FuzzFraming: whatever bytes come, the requests that both we and net/http take begin
// and end at the same ones, in one read or in many, whichever way a listener has for
// HTTP/1.1. What one of both refuses, it may.
func FuzzFraming(f *testing.F) {
	const next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, head := range []string{
		"", "Content-Length: 5\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n", "Content-Length: +5\r\n", "Content-Length: 5\n", "Content-Length:\t5 \r\n", "Content-Length : 5\r\n",
		"Transfer-Encoding: Chunked\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding:\vchunked\r\n",
		"X: y\r\n Content-Length: 5\r\n", "Connection: close\r\nContent-Length: 5\r\n", "Expect: 100-continue\r\nContent-Length: 5\r\n", "Connection: content-length\r\nContent-Length: 5\r\n",
		"Upgrade: h2c\r\nConnection: upgrade\r\n", "X: \x00\r\nContent-Length: 5\r\n", "Content-Length: 005\r\n", "Content-Length: 9999999999999999999\r\n",
	} {
		for _, body := range []string{"", "hello", "5\r\nhello\r\n0\r\n\r\n", "5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n", "5\nhello\n0\n\n", "0005\r\nhello\r\n00\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "0\r\n\r\n"} {
			f.Add([]byte("POST /x HTTP/1.1\r\nHost: a\r\n" + head + "\r\n" + body + next))
			f.Add([]byte(next + "GET /x HTTP/1.1\r\nHost: a\r\n" + head + "\r\n" + body + next)) // simple at first
		}
	}
	f.Add([]byte("GET http://a/x?y HTTP/1.1\r\nHost: b\r\n\r\n" + next))
	f.Add([]byte("POST /x HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello" + next))
	f.Add([]byte("HEAD /x HTTP/1.1\nHost: a\n\n" + next))
	f.Add([]byte("\r\n\r\n" + next + next))
	f.Add([]byte("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat(next, 300)))
	direct, loop := newFront(f, false), newFront(f, true)
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, theirs := framedHere(t, bytes.NewReader(b)), framedByNet(b)
		for i := range min(len(ours), len(theirs)) {
			if ours[i] != theirs[i] {
				t.Errorf("request %d is %.300s here, and %.300s to net/http", i, ours[i], theirs[i])
			}
		}
		if slow := framedHere(t, &trickle{b: b}); !slices.Equal(ours, slow) {
			t.Errorf("%.300q at once, %.300q in pieces", ours, slow)
		}
		for _, first := range []int{len(b), len(b) / 2} {
			for way, front := range map[string]*front{"alone": direct, "where HTTP/2 may come": loop} {
				if over := front.framedIn(t, b, first); !slices.Equal(ours, over) {
					t.Errorf("%.300q, and to HTTP/1.1 %s, cut at %d, %.300q", ours, way, first, over)
				}
			}
		}
	})
}

// trickle gives a few bytes at a time.
type trickle struct {
	b []byte
	n int
}

func (r *trickle) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	r.n = (r.n*5 + 1) % 13
	k := copy(p[:min(len(p), r.n+1)], r.b)
	r.b = r.b[k:]
	return k, nil
}
