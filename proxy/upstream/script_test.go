package upstream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// script is a backend whose nth connection is answered by the nth function, and
// those after by the last.
type script struct {
	addr  string
	conns atomic.Int64
	l     net.Listener
}

func play(t testing.TB, acts ...func(net.Conn, *bufio.Reader)) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{addr: l.Addr().String(), l: l}
	var open sync.WaitGroup
	open.Go(func() { // counted, too: a connection may wait to be accepted when the test ends
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(s.conns.Add(1)) - 1
			open.Go(func() {
				defer c.Close()
				acts[min(n, len(acts)-1)](c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return s
}

// say answers every request on a connection with text.
func say(text string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, text)
		}
	}
}

// once answers one request and closes.
func once(text string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, text)
		}
	}
}

func endpoints(addrs ...string) *balance.Set {
	s := &balance.Set{}
	for _, a := range addrs {
		s.Endpoints = append(s.Endpoints, balance.Endpoint{Addr: netip.MustParseAddrPort(a), Health: &balance.Health{}})
	}
	slices.SortFunc(s.Endpoints, func(a, b balance.Endpoint) int { return a.Addr.Compare(b.Addr) })
	return s
}

// memory is a request body that is in memory.
type memory struct {
	io.ReadCloser
	text string
}

func (m memory) Whole() ([]byte, bool) { return []byte(m.text), true }

func inMemory(text string) memory { return memory{io.NopCloser(strings.NewReader(text)), text} }

// forward sends one request and returns status and body, or the body's error.
func forward(b *upstream.Backend, method string, body string) (int, string) {
	ex := &exchange.Exchange{}
	request(ex, method, "/x")
	if body != "" {
		ex.Request.Body, ex.Request.Length = inMemory(body), int64(len(body))
	}
	b.Forward(ex)
	if ex.Response.Body == nil {
		return ex.Response.Status, string(ex.Response.Text)
	}
	defer ex.Response.Body.Close()
	text, err := io.ReadAll(ex.Response.Body)
	if err != nil {
		return ex.Response.Status, "error: " + err.Error()
	}
	return ex.Response.Status, string(text)
}

// closedPort is an address that refuses connections.
func closedPort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
