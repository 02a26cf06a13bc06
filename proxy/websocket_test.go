package proxy_test

//lint:file-ignore SA1019 the Transport of net/http refuses the field :protocol, the one it replaces knows extended CONNECT

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
	"quayside.io/test/certificate"
)

// chatPod is a pod with a real WebSocket server: it echoes what it is sent, after
// having said what it was asked. Elsewhere it speaks plain HTTP.
func chatPod(t *testing.T) string {
	t.Helper()
	chat := websocket.Server{
		Handshake: func(c *websocket.Config, r *http.Request) error {
			if r.URL.Path == "/forbidden" {
				return errors.New("not you")
			}
			if len(c.Protocol) > 1 {
				c.Protocol = c.Protocol[1:2]
			}
			return nil
		},
		Handler: func(ws *websocket.Conn) {
			r := ws.Request()
			websocket.Message.Send(ws, fmt.Sprintf("%s %s host=%s xff=%s", r.Method, r.RequestURI, r.Host, r.Header.Get("X-Forwarded-For")))
			for {
				var message []byte
				if websocket.Message.Receive(ws, &message) != nil {
					return
				}
				if websocket.Message.Send(ws, message) != nil {
					return
				}
			}
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			io.WriteString(w, "no WebSocket here")
			return
		}
		chat.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// byHTTP1 connects to a WebSocket as ever.
func byHTTP1(t *testing.T, addr string, config *tls.Config) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		return tls.Client(c, config)
	}
	return c
}

// byHTTP2 returns what a client of HTTP/1.1 takes for a connection, and what is an
// extended CONNECT in truth.
func byHTTP2(t *testing.T, addr string, config *tls.Config) net.Conn {
	t.Helper()
	tr := &http2.Transport{AllowHTTP: config == nil, DialTLSContext: func(ctx context.Context, network, _ string, _ *tls.Config) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil || config == nil {
			return c, err
		}
		return tls.Client(c, config), nil
	}}
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		translate(t, tr, far, config != nil)
	}()
	t.Cleanup(func() { near.Close(); <-done; tr.CloseIdleConnections() })
	return near
}

// translate makes of an Upgrade an extended CONNECT, and of its 200 a 101.
func translate(t *testing.T, tr *http2.Transport, c net.Conn, secure bool) {
	in := bufio.NewReader(c)
	asked, err := http.ReadRequest(in)
	if err != nil {
		t.Error(err)
		return
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	key := asked.Header.Get("Sec-WebSocket-Key")
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Key"} {
		asked.Header.Del(name)
	}
	asked.Header[":protocol"] = []string{"websocket"}
	up, down := io.Pipe()
	go func() { io.Copy(down, in); down.Close() }()
	resp, err := tr.RoundTrip(&http.Request{
		Method: http.MethodConnect, URL: &url.URL{Scheme: scheme, Host: asked.Host, Path: asked.URL.Path, RawQuery: asked.URL.RawQuery}, Host: asked.Host,
		Header: asked.Header, Body: up, ContentLength: -1,
	})
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		body, _ := io.ReadAll(resp.Body)
		fmt.Fprintf(c, "HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n%s", resp.StatusCode, len(body), body)
		return
	}
	if resp.ContentLength > 0 || resp.Header.Get("Sec-WebSocket-Accept") != "" || resp.Header.Get("Upgrade") != "" {
		t.Errorf("the tunnel begins with %v, length %d", resp.Header, resp.ContentLength)
	}
	fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n", acceptFor(key))
	resp.Header.Write(c)
	io.WriteString(c, "\r\n")
	io.Copy(c, resp.Body)
}

// serveChat runs a proxy with an Ingress before a pod, which is spoken to by protocol.
func serveChat(t *testing.T, protocol, pod string, change func(*proxy.Options)) (p *proxy.Proxy, config *tls.Config) {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2, o.H2C = true, true
		if change != nil {
			change(o)
		}
	})
	secret := certificate.Secret(t, "default/chat", time.Now().Add(time.Hour), "chat.example")
	ing := ingress("chat", "chat.example", "/", "chat", number)
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"chat.example"}, SecretName: "chat"}}
	ing.Annotations = map[string]string{"ingress.quayside.io/ssl-redirect": "false", "ingress.quayside.io/backend-protocol": protocol}
	files.Put(service("chat", corev1.ServicePort{Port: 80}), slice("chat", "", pod), ing, secret)
	eventually(t, "the route is served", func() bool {
		code, _ := get(t, bound(p, false), "chat.example", "/plain")
		return code != 404 && code != 503
	})
	return p, &tls.Config{RootCAs: certificate.Roots(secret), ServerName: "chat.example"}
}

// The same conversations with a real WebSocket server, over both protocols, in the
// clear and over TLS.
func TestWebSocket(t *testing.T) {
	p, secure := serveChat(t, "HTTP", chatPod(t), nil)
	converse(t, p, secure)
}

// The same where the pod speaks HTTP/2 (RFC 8441): the proxy before the pod is one.
func TestWebSocketToHTTP2(t *testing.T) {
	pod, _ := serveChat(t, "HTTP", chatPod(t), nil)
	p, secure := serveChat(t, "H2C", bound(pod, false), nil)
	converse(t, p, secure)
}

func converse(t *testing.T, p *proxy.Proxy, secure *tls.Config) {
	forHTTP2 := secure.Clone()
	forHTTP2.NextProtos = []string{"h2"}
	for _, w := range []struct {
		name    string
		connect func(*testing.T, string, *tls.Config) net.Conn
		config  *tls.Config
	}{
		{"HTTP1", byHTTP1, nil},
		{"HTTP1 over TLS", byHTTP1, secure},
		{"HTTP2", byHTTP2, nil},
		{"HTTP2 over TLS", byHTTP2, forHTTP2},
	} {
		t.Run(w.name, func(t *testing.T) {
			dial := func(path string) (*websocket.Conn, error) {
				c := w.connect(t, bound(p, w.config != nil), w.config)
				c.SetDeadline(time.Now().Add(20 * time.Second))
				config, err := websocket.NewConfig("ws://chat.example"+path, "http://chat.example")
				if err != nil {
					t.Fatal(err)
				}
				config.Protocol = []string{"first", "second"}
				ws, err := websocket.NewClient(config, c)
				if err != nil {
					c.Close()
				}
				return ws, err
			}
			ws, err := dial("/chat?room=1")
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			if got := ws.Config().Protocol; len(got) != 1 || got[0] != "second" {
				t.Errorf("agreed on %q", got)
			}
			var got []byte
			if err := websocket.Message.Receive(ws, &got); err != nil || string(got) != "GET /chat?room=1 host=chat.example xff=127.0.0.1" {
				t.Fatalf("%q, %v", got, err)
			}
			for _, n := range []int{0, 1, 125, 126, 65535, 65536, 1 << 20} { // the last is larger than every window
				want := bytes.Repeat([]byte{byte(n), 'x'}, n/2+1)[:n]
				sent := make(chan error, 1)
				go func() { sent <- websocket.Message.Send(ws, want) }()
				if err := websocket.Message.Receive(ws, &got); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d of %d bytes, %v", len(got), n, err)
				}
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
			}
			if _, err := dial("/forbidden"); err == nil {
				t.Error("a handshake that the pod refuses: nothing is wrong")
			}
			if _, err := dial("/plain"); err == nil {
				t.Error("a pod that does not switch: nothing is wrong")
			}
		})
	}
}

// scriptedPod accepts a WebSocket and then does what script says.
func scriptedPod(t *testing.T, script func(c *net.TCPConn, in *bufio.Reader)) string {
	t.Helper()
	return acceptEach(t, func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return
		}
		accept := acceptFor(r.Header.Get("Sec-WebSocket-Key"))
		switch r.URL.Path {
		case "/another-key":
			accept = acceptFor("another")
		case "/no-accept":
			accept = ""
		}
		protocol := "websocket"
		if r.URL.Path == "/another-protocol" {
			protocol = "chat"
		}
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Accept: %s\r\n\r\n", protocol, accept)
		tcp, _ := c.(*net.TCPConn)
		script(tcp, in)
	})
}

// acceptEach serves each connection to the address that it returns, until the test ends.
func acceptEach(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// Ends and resets pass between a stream and the pod's connection, each as what it
// is, and each direction by itself.
func TestWebSocketEnds(t *testing.T) {
	for _, protocol := range []string{"HTTP", "H2C"} {
		t.Run(protocol, func(t *testing.T) { endings(t, protocol) })
	}
}

func endings(t *testing.T, protocol string) {
	heard := make(chan string, 1)
	p, _ := serveChat(t, "HTTP", scriptedPod(t, func(c *net.TCPConn, in *bufio.Reader) {
		said, _ := in.ReadString('\n')
		switch said {
		case "you first\n":
			all, err := io.ReadAll(in)
			fmt.Fprintf(c, "heard %q %v", all, err)
		case "me first\n":
			io.WriteString(c, "that is all")
			c.CloseWrite()
			all, err := io.ReadAll(in)
			heard <- fmt.Sprintf("%q %v", all, err)
		case "reset me\n":
			io.WriteString(c, "now")
			_, err := in.ReadByte()
			heard <- fmt.Sprint(errors.Is(err, syscall.ECONNRESET))
		case "reset yourself\n":
			c.SetLinger(0)
		}
	}), nil)
	if protocol != "HTTP" {
		p, _ = serveChat(t, protocol, bound(p, false), nil)
	}
	c := dialFramed(t, bound(p, false))
	say := func(id uint32, end bool, what string) { c.fr.WriteData(id, end, []byte(what)) }
	hears := func(want string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("the pod heard %s, want %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("the pod never heard %s", want)
		}
	}
	c.connect(1, "/")
	c.hear(1, "200 ")
	say(1, false, "you first\n")
	say(1, true, "hello")
	c.hear(1, `heard "hello" <nil>END`)

	c.connect(3, "/")
	say(3, false, "me first\n") // without waiting to be granted
	c.hear(3, "200 that is allEND")
	say(3, true, "I go on")
	hears(`"I go on" <nil>`)

	c.connect(5, "/")
	say(5, false, "reset me\n")
	c.hear(5, "200 now")
	c.fr.WriteRSTStream(5, http2.ErrCodeCancel)
	hears("true")

	c.connect(7, "/")
	c.hear(7, "200 ")
	say(7, false, "reset yourself\n")
	c.hear(7, "RST CANCEL")

	id := uint32(9)
	for _, path := range []string{"/another-key", "/no-accept", "/another-protocol"} {
		c.connect(id, path)
		c.hear(id, "502 502 Bad Gateway: Service default/chat does not speak WebSocket here: "+map[string]string{
			"/another-key":      "its Sec-WebSocket-Accept does not fit the key",
			"/no-accept":        "its Sec-WebSocket-Accept does not fit the key",
			"/another-protocol": "it switches to another protocol",
		}[path]+"\nEND")
		id += 2
	}
}

// A tunnel over HTTP/2 has its line of the access log when it ends, with what was
// sent, as one over HTTP/1.1 has.
func TestWebSocketIsLogged(t *testing.T) {
	format, err := accesslog.Named("$request|$status $body_bytes_sent", nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := &logFile{}
	p, _ := serveChat(t, "HTTP", scriptedPod(t, func(c *net.TCPConn, in *bufio.Reader) { io.WriteString(c, "ten bytes.") }), func(o *proxy.Options) {
		o.AccessLog = proxy.AccessLog{Format: format, Share: 1, To: lines}
	})
	c := dialFramed(t, bound(p, false))
	c.connect(1, "/chat")
	c.hear(1, "200 ten bytes.END")
	c.fr.WriteData(1, true, nil)
	eventually(t, "the tunnel is logged", func() bool { return slices.Contains(lines.lines(), "GET /chat HTTP/2.0|101 10") })
}

// A drain lets tunnels go on until the grace period has passed, and then ends them,
// wherever they stand.
func TestWebSocketDrains(t *testing.T) {
	heard := make(chan error, 1)
	var c *framedClient
	t.Run("serve", func(inner *testing.T) {
		p, _ := serveChat(inner, "HTTP", scriptedPod(t, func(c *net.TCPConn, in *bufio.Reader) {
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					heard <- err
					return
				}
				io.WriteString(c, line)
			}
		}), func(o *proxy.Options) { o.GracePeriod = 500 * time.Millisecond })
		c = dialFramed(t, bound(p, false))
		c.connect(1, "/")
		c.hear(1, "200 ")
		c.fr.WriteData(1, false, []byte("before\n"))
		c.hear(1, "before\n")
		inner.Cleanup(func() { // the drain is after this
			go func() { c.fr.WriteData(1, false, []byte("meanwhile\n")) }()
		})
	})
	c.hear(1, "meanwhile\n")
	select {
	case <-heard:
	case <-time.After(20 * time.Second):
		t.Error("the pod was not told")
	}
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			break
		}
		if _, ok := f.(*http2.DataFrame); ok {
			t.Error("there is more")
		}
	}
}

// acceptFor is what a server answers to a key (RFC 6455 section 4.2.2).
func acceptFor(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
