package upstream_test

import (
	"bufio"
	"bytes"
	"net"
	"testing"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// BenchmarkForward is one request without a body over a connection that is kept
// alive, the pod in the same process.
func BenchmarkForward(b *testing.B) {
	s := play(b, func(c net.Conn, _ *bufio.Reader) {
		buf := make([]byte, 4<<10)
		for {
			n, err := c.Read(buf)
			if err != nil || !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
				return
			}
			if _, err := c.Write([]byte(fine)); err != nil {
				return
			}
		}
	})
	_, backend := newEngine(b, upstream.Options{})
	backend.SetEndpoints(endpoints(s.addr))
	ex := &exchange.Exchange{}
	method, target, host, agent := []byte("GET"), []byte("/a/b?c=d"), []byte("web"), []byte("User-Agent")
	b.ReportAllocs()
	for b.Loop() {
		ex.Reset()
		ex.Request.Method, ex.Request.Target, ex.Request.Host = method, target, host
		ex.Request.Header.AddBorrowed(agent, host)
		backend.Forward(ex)
		if ex.Response.Status != 200 {
			b.Fatalf("status %d", ex.Response.Status)
		}
		ex.Response.Body.Close()
	}
}
