package serve

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
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
type framed struct{ seen []string }

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
		f.seen = append(f.seen, fmt.Sprintf("%s %s %q", r.Method, r.Target, body))
	}
	ex.Answer(200, "ok")
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
	return f.seen
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
// and end at the same ones, in one read or in many. What one of both refuses, it may.
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
		}
	}
	f.Add([]byte("GET http://a/x?y HTTP/1.1\r\nHost: b\r\n\r\n" + next))
	f.Add([]byte("POST /x HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello" + next))
	f.Add([]byte("HEAD /x HTTP/1.1\nHost: a\n\n" + next))
	f.Add([]byte("\r\n\r\n" + next + next))
	f.Add([]byte("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat(next, 300)))
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
