package upstream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// A tunnel to a pod that takes nothing ends when the route's patience has, however long
// that of others is.
func TestTunnelHasTheRoutesPatience(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	plain := play(t, func(c net.Conn, in *bufio.Reader) {
		http.ReadRequest(in)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		<-ended
	})
	streams := playFrames(t, podScript{
		settings: []http2.Setting{{ID: http2.SettingEnableConnectProtocol, Val: 1}}, answer: (*podConn).fine,
		connect: func(c *podConn, id uint32) { c.head(id, false, ":status: 200") },
	})
	_, one := newEngine(t, upstream.Options{})
	one.SetEndpoints(endpoints(plain.addr))
	_, two := newHTTP2Engine(t, upstream.Options{})
	two.SetEndpoints(endpoints(streams.addr))
	for name, b := range map[string]*upstream.Backend{"HTTP/1.1": one, "HTTP/2": two} {
		ex := &exchange.Exchange{}
		request(ex, "GET", "/chat")
		ex.Request.Upgrade = []byte("websocket")
		ex.Request.Header.Add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		ex.Request.Forwarding = &exchange.Forwarding{SendTimeout: 100 * time.Millisecond}
		if b.Forward(ex); ex.Response.Status != 101 {
			t.Fatalf("%s: %d %s", name, ex.Response.Status, text(ex))
		}
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); ex.Response.Upgraded(far) }()
		go func() {
			for some := make([]byte, 1<<20); ; {
				if _, err := near.Write(some); err != nil {
					return
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the tunnel waits for a pod that takes nothing", name)
		}
		near.Close()
	}
}
