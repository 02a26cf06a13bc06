package serve_test

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// answering is a backend, and a client, that allocate nothing: what is counted
// is the proxy's.
func answering(t testing.TB, answer []byte) string {
	return rawBackend(t, func(c net.Conn) {
		buf := make([]byte, 16<<10)
		for n := 0; ; {
			k, err := c.Read(buf[n:])
			if err != nil {
				return
			}
			if n += k; bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
				n = 0
				if _, err := c.Write(answer); err != nil {
					return
				}
			}
		}
	})
}

// client returns a function that makes one request through the proxy.
func client(t testing.TB, r *rig) func() {
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	req := []byte("GET /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\n\r\n")
	buf := make([]byte, 64<<10)
	return func() {
		if _, err := c.Write(req); err != nil {
			t.Fatal(err)
		}
		for n := 0; ; {
			k, err := c.Read(buf[n:])
			if err != nil {
				t.Fatal(err)
			}
			if n += k; bytes.HasSuffix(buf[:n], []byte("xxxx")) {
				if !bytes.HasPrefix(buf[:n], []byte("HTTP/1.1 200")) {
					t.Fatalf("answered %q", buf[:n])
				}
				return
			}
		}
	}
}

var smallAnswer = []byte("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: text/plain\r\nETag: \"a\"\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100))

// A request that is proxied whole costs no allocation, fasthttp's part included.
func TestProxyingAllocatesNothing(t *testing.T) {
	if racing {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	r := newRig(t, serve.Options{}, upstream.Options{}, answering(t, smallAnswer))
	ask := client(t, r)
	for range 20 {
		ask()
	}
	if n := testing.AllocsPerRun(500, ask); n != 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}

func BenchmarkProxy(b *testing.B) {
	r := newRig(b, serve.Options{}, upstream.Options{}, answering(b, smallAnswer))
	ask := client(b, r)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}
