package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/route"
	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// rig is a whole proxy on loopback: server, dispatcher with a table, engine.
type rig struct {
	t      testing.TB
	server *serve.Server
	routes *dispatch.Dispatcher
	engine *upstream.Engine
	addr   string
	cert   *tls.Certificate // of dialTLS
	change func(*networkingv1.Ingress)
	stop   func()
}

// newRig serves the default backend default/web of an Ingress from addrs.
func newRig(t testing.TB, o serve.Options, u upstream.Options, addrs ...string) *rig {
	t.Helper()
	engine := upstream.New(u)
	o.Draining = engine.DrainTunnels
	d := dispatch.New(dispatch.Options{Log: o.Log, TrustedProxies: o.TrustedProxies})
	o.Handler, o.Certificate = d, d.Certificate
	s := serve.New(o)
	r := &rig{t: t, server: s, routes: d, engine: engine}
	d.SetTable(r.table(), nil)
	r.route(addrs...)
	s.SetListeners([]serve.Listener{{Address: "127.0.0.1:0"}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- s.Run(ctx) }()
	go func() { done <- engine.Run(ctx) }()
	r.stop = func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
		r.stop = func() {}
	}
	t.Cleanup(func() { r.stop() })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if l := s.Listeners(); len(l) == 1 && l[0].Bound != "" {
			r.addr = l[0].Bound
			return r
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not listen")
		}
	}
}

func (r *rig) table() *route.Table {
	class := "quayside"
	ing := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
		},
	}
	if r.change != nil {
		r.change(ing)
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	return route.Compile(snapshot.Of(ing, svc), nil, route.Options{FallbackCertificate: r.cert})
}

// dial connects to the server.
func (r *rig) dial() net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// dialTLS listens with TLS as well, and connects there.
func (r *rig) dialTLS() net.Conn {
	r.t.Helper()
	some := httptest.NewTLSServer(nil)
	some.Close()
	r.cert = &some.TLS.Certificates[0]
	r.routes.SetTable(r.table(), []dispatch.Forwarder{r.engine.Backend(r.table().Backends[0])})
	plain, secure := serve.Listener{Address: "127.0.0.1:0"}, serve.Listener{Address: "127.0.0.1:0", TLS: true}
	r.server.SetListeners([]serve.Listener{plain, secure})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		for _, l := range r.server.Listeners() {
			if l.Listener == secure && l.Bound != "" {
				c, err := tls.Dial("tcp", l.Bound, &tls.Config{InsecureSkipVerify: true})
				if err != nil {
					r.t.Fatal(err)
				}
				return c
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatal("the server does not listen with TLS")
		}
	}
}

// route declares the endpoints.
func (r *rig) route(addrs ...string) *upstream.Backend {
	set := &balance.Set{Why: "Service default/web has no endpoint"}
	for _, a := range addrs {
		set.Endpoints = append(set.Endpoints, balance.Endpoint{Addr: netip.MustParseAddrPort(a), Health: &balance.Health{}})
		set.Why = ""
	}
	t := r.table()
	var backends []dispatch.Forwarder
	var b *upstream.Backend
	for _, of := range t.Backends {
		b = r.engine.Backend(of)
		b.SetEndpoints(set)
		backends = append(backends, b)
	}
	r.routes.SetTable(t, backends)
	return b
}

// backend starts an ordinary HTTP server and returns its address.
func backend(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// rawBackend answers each connection with whatever answer writes.
func rawBackend(t testing.TB, answer func(net.Conn)) string {
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
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return l.Addr().String()
}

// readRequest reads one request head and body of a raw backend.
func readRequest(r *bufio.Reader) (*http.Request, string, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(req.Body)
	return req, string(body), err
}

// exchange sends raw bytes and returns all that comes back until the proxy
// closes the connection or, having begun to answer, is silent.
func (r *rig) exchange(raw string) string {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, raw); err != nil {
		r.t.Fatal(err)
	}
	var all strings.Builder
	buf := make([]byte, 64<<10)
	for {
		if all.Len() > 0 { // it has begun to answer
			c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		}
		n, err := c.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
	}
}

func (r *rig) get(path string) (*http.Response, string) {
	r.t.Helper()
	resp, err := http.Get("http://" + r.addr + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("GET %s: body: %v", path, err)
	}
	return resp, string(body)
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s host=%s body=%q te=%v", r.Method, r.RequestURI, r.Host, body, r.TransferEncoding)
}
