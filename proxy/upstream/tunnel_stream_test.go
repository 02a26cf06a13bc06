package upstream_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// askWebSocket forwards a request for a WebSocket as a front end of HTTP/1.1 has it, or
// of HTTP/2.
func askWebSocket(b *upstream.Backend, overHTTP2 bool) *exchange.Exchange {
	ex := &exchange.Exchange{}
	request(ex, "GET", "/chat")
	ex.Request.Upgrade = []byte("WebSocket")
	ex.Request.Header.Add("Sec-WebSocket-Version", "13")
	if overHTTP2 {
		ex.Request.UpgradeKey = []byte("dGhlIHNhbXBsZSBub25jZQ==")
	} else {
		ex.Request.Header.Add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	}
	b.Forward(ex)
	return ex
}

func text(ex *exchange.Exchange) string {
	if ex.Response.Body == nil {
		return string(ex.Response.Text)
	}
	defer ex.Response.Body.Close()
	all, _ := io.ReadAll(ex.Response.Body)
	return string(all)
}

// A pod that takes extended CONNECT is asked for a tunnel, and may refuse; one that does
// not is asked for what the request is without, which is no WebSocket.
func TestWebSocketOfHTTP2Pods(t *testing.T) {
	takes := []http2.Setting{{ID: http2.SettingEnableConnectProtocol, Val: 1}}
	for _, c := range []struct {
		name       string
		pod        podScript
		one, other string // what a client of HTTP/1.1 is answered, and one of HTTP/2
	}{
		{"none", fineScript(), "200 fine", "502 502 Bad Gateway: Service default/web does not speak WebSocket here: it does not switch to WebSocket\n"},
		{"refused", podScript{settings: takes, answer: (*podConn).fine, connect: func(c *podConn, id uint32) {
			c.head(id, false, ":status: 403")
			c.fr.WriteData(id, true, []byte("not you"))
		}}, "403 not you", "403 not you"},
		{"refused without a word", podScript{settings: takes, answer: (*podConn).fine, connect: func(c *podConn, id uint32) { c.head(id, true, ":status: 404") }}, "404 ", "404 "},
		{"granted", podScript{settings: takes, answer: (*podConn).fine, connect: func(c *podConn, id uint32) {
			c.head(id, false, ":status: 200", "content-length: 3", "sec-websocket-protocol: chat")
		}}, "101 ", "101 "},
		{"taken back", podScript{settings: append(takes, http2.Setting{ID: http2.SettingEnableConnectProtocol}), answer: (*podConn).fine}, "502 ", "502 "},
	} {
		for _, overHTTP2 := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", client of HTTP/2"}[overHTTP2], func(t *testing.T) {
				want := c.one
				if overHTTP2 {
					want = c.other
				}
				p := playFrames(t, c.pod)
				e, b := newHTTP2Engine(t, upstream.Options{})
				b.SetEndpoints(endpoints(p.addr))
				ex := askWebSocket(b, overHTTP2)
				status := ex.Response.Status
				if status != 101 {
					if got := fmt.Sprintf("%d %s", status, text(ex)); !strings.HasPrefix(got, want) {
						t.Errorf("%q, want %q", got, want)
					}
					return
				}
				h := &ex.Response.Header
				accept := string(h.Get("Sec-WebSocket-Accept"))
				if want != "101 " || string(h.Get("Upgrade")) != "websocket" || string(h.Get("Sec-WebSocket-Protocol")) != "chat" || h.Get("Content-Length") != nil ||
					!overHTTP2 && accept != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" || overHTTP2 && accept != "" {
					t.Errorf("%d %v", status, h.Fields())
				}
				near, far := net.Pipe()
				done := make(chan struct{})
				go func() { defer close(done); ex.Response.Upgraded(far) }()
				until(t, "the tunnel is there", func() bool { return e.Tunnels() == 1 })
				near.Close()
				<-done
			})
		}
	}
}
