package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// own is a backend whose TLS is its own: its certificate is in roots.
func own(t *testing.T, name string) (addr string, roots *x509.CertPool) {
	s := httptest.NewTLSServer(echoing(name))
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return strings.TrimPrefix(s.URL, "https://"), roots
}

// through asks for a path over TLS to addr, by a server name, which the backend's own
// certificate need not be for.
func through(addr, name, path string, roots *x509.CertPool) (string, error) {
	config := &tls.Config{InsecureSkipVerify: true, ServerName: name, VerifyConnection: func(s tls.ConnectionState) error {
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
		return err
	}}
	c, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: 30 * time.Second}, Config: config}).Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, name)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(body)), err
}

// startPassing serves hosts that are handed on, named after what they are about, and
// waits for the last.
func startPassing(t *testing.T, change func(*proxy.Options)) (*cluster.Files, *proxy.Proxy, *x509.CertPool) {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2 = true
		if change != nil {
			change(o)
		}
	})
	addr, roots := own(t, "own")
	with := func(pairs ...string) map[string]string {
		all := map[string]string{"ssl-passthrough": "true", "service": "own"}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		service("own", corev1.ServicePort{Port: 80}), slice("own", "", addr), service("none", corev1.ServicePort{Port: 80}),
		certificate.Authorities("default", "ca", certificate.Root(t, "root").PEM()),
		annotated("plain", "plain.test", nil),
		annotated("pass", "pass.test", with()),
		annotated("https", "https.test", with("backend-protocol", "HTTPS")),
		annotated("wild", "*.wild.test", with()),
		annotated("alias", "named.test", with("server-alias", "alias.test")),
		annotated("off", "off.test", map[string]string{"ssl-passthrough": "false"}),
		annotated("bad", "bad.test", with("ssl-passthrough", "maybe")),
		annotated("below", "below.test", with("path", "/below")),
		annotated("empty", "empty.test", with("service", "none")),
		annotated("near", "near.test", with("allowlist-source-range", "127.0.0.0/8")),
		annotated("far", "far.test", with("allowlist-source-range", "10.0.0.0/8")),
		annotated("denied", "denied.test", with("denylist-source-range", "127.0.0.1")),
		annotated("certs", "certs.test", with("auth-tls-secret", "default/ca")),
		annotated("auth", "auth.test", with("auth-url", "http://auth.test/")),
		annotated("a-beside", "beside.test", with()),
		annotated("b-beside", "beside.test", map[string]string{"path": "/admin", "allowlist-source-range": "10.0.0.0/8"}),
		annotated("a-first", "first.test", nil),
		annotated("b-first", "first.test", with("path", "/pass")),
		ingress("last", "last.test", "/", "web", number))
	eventually(t, "the routes are served", func() bool { code, _ := get(t, bound(p, false), "last.test", "/"); return code == 200 })
	return files, p, roots
}

func TestSSLPassthrough(t *testing.T) {
	_, p, roots := startPassing(t, nil)
	for _, c := range []struct{ name, path, says, fails string }{
		{"pass.test", "/x", "200 own uri=/x ", ""},
		{"PASS.test", "/x", "200 own uri=/x ", ""},
		{"https.test", "/", "200 own uri=/ ", ""},
		{"a.wild.test", "/", "200 own uri=/ ", ""},
		{"a.b.wild.test", "/", "", "unknown authority"},
		{"named.test", "/", "200 own uri=/ ", ""},
		{"alias.test", "/", "200 own uri=/ ", ""},
		{"near.test", "/", "200 own uri=/ ", ""},
		{"far.test", "/", "", "access denied"},
		{"denied.test", "/", "", "access denied"},
		{"below.test", "/below", "", "internal error"},
		{"empty.test", "/", "", "internal error"},
		{"certs.test", "/", "", "internal error"},
		{"auth.test", "/", "", "internal error"},
		{"beside.test", "/", "", "internal error"},
		{"off.test", "/", "", "unknown authority"}, // our own certificate
		{"bad.test", "/", "", "unknown authority"},
		{"first.test", "/", "", "unknown authority"},
		{"plain.test", "/", "", "unknown authority"},
	} {
		said, err := through(bound(p, true), c.name, c.path, roots)
		if !strings.HasPrefix(said, c.says) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s%s: %q %v, want %q %q", c.name, c.path, said, err, c.says, c.fails)
		}
	}
	var told []string
	for _, problem := range p.Problems() {
		told = append(told, problem.Object.Name+" "+problem.Reason)
	}
	for _, want := range []string{"below PassthroughUnused", "certs RouteClosed", "auth RouteClosed", "a-beside RouteClosed", "b-beside PassthroughUnused", "b-first PassthroughUnused", "bad RouteClosed"} {
		if !strings.Contains(strings.Join(told, ", "), want) {
			t.Errorf("%q is not among the problems: %q", want, told)
		}
	}
}

// Requests for such a host that come without TLS are served as ever; those that come
// over TLS which ended here never reach its backend.
func TestSSLPassthroughIsNeverServedDecrypted(t *testing.T) {
	_, p, _ := startPassing(t, nil)
	if code, body := get(t, bound(p, false), "pass.test", "/"); code != 400 || !strings.Contains(body, "HTTPS server") {
		t.Errorf("without TLS: %d %q, want the words of a backend that speaks TLS", code, body)
	}
	for _, http2 := range []bool{false, true} {
		tr := clientOf(t, bound(p, true), http2, nil)
		for _, host := range []string{"pass.test", "x.wild.test", "alias.test", "first.test/pass", "beside.test/admin"} {
			name, path, _ := strings.Cut(host, "/")
			if status, said := by(t, tr, "plain.test", name, "/"+path); status != 421 {
				t.Errorf("%s, HTTP/2 %v: %d %s", host, http2, status, said)
			}
		}
		if status, said := by(t, tr, "plain.test", "plain.test", "/"); status != 200 {
			t.Errorf("plain.test, HTTP/2 %v: %d %s", http2, status, said)
		}
	}
	// A ClientHello that is too long to be looked at is not decrypted either.
	config := &tls.Config{InsecureSkipVerify: true, ServerName: "pass.test"}
	for i := range 250 {
		config.NextProtos = append(config.NextProtos, fmt.Sprint(strings.Repeat("x", 80), i))
	}
	if c, err := tls.Dial("tcp", bound(p, true), config); err == nil {
		c.Close()
		t.Error("a long ClientHello led to a handshake with us")
	}
}

// With the switch off, what asks to be handed on is closed, and told.
func TestEnableSSLPassthroughFalse(t *testing.T) {
	_, p, roots := startPassing(t, func(o *proxy.Options) { o.Routes.NoPassthrough = true })
	if _, err := through(bound(p, true), "pass.test", "/", roots); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("over TLS: %v", err)
	}
	if code, body := get(t, bound(p, false), "pass.test", "/"); code != 503 || !strings.Contains(body, "--enable-ssl-passthrough=false") {
		t.Errorf("without TLS: %d %s", code, body)
	}
}

// The backend hears of the client by a PROXY header; ours may have heard by one too.
func TestSSLPassthroughProxyProtocol(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	some := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "from ", r.RemoteAddr) }))
	some.Listener.Close()
	some.Listener = &proxyproto.Listener{Listener: l, Policy: func(net.Addr) (proxyproto.Policy, error) { return proxyproto.REQUIRE, nil }}
	some.StartTLS()
	t.Cleanup(some.Close)
	files, p := start(t, func(o *proxy.Options) {
		o.ProxyProtocol, o.TrustedProxies = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", l.Addr().String()))
	for i, version := range []string{"v1", "v2"} {
		ing := annotated(version, version+".test", map[string]string{"ssl-passthrough": "true"})
		ing.Annotations["ingress.quayside.io/ssl-passthrough-proxy-protocol"] = version
		files.Put(ing)
		ask := func() (string, error) {
			raw, err := net.Dial("tcp", bound(p, true))
			if err != nil {
				return "", err
			}
			defer raw.Close()
			fmt.Fprintf(raw, "PROXY TCP4 192.0.2.%d 192.0.2.9 1234 443\r\n", i+1)
			c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: version + ".test"})
			c.SetDeadline(time.Now().Add(20 * time.Second))
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			all, err := io.ReadAll(c)
			return string(all), err
		}
		eventually(t, version+": the backend knows the client", func() bool {
			said, _ := ask()
			return strings.HasSuffix(said, fmt.Sprintf("from 192.0.2.%d:1234", i+1))
		})
	}
}

// While one endpoint takes no connection, those of clients are carried all the same.
func TestSSLPassthroughTriesAnother(t *testing.T) {
	files, p, roots := startPassing(t, nil)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := dead.Addr().String()
	dead.Close()
	s := slice("own", "", nobody)
	s.Name = "own-dead"
	files.Put(s)
	eventually(t, "both endpoints are known", func() bool {
		st, _ := p.State().(proxy.State)
		for _, b := range st.Backends {
			if b.Service == "default/own" && len(b.Endpoints) == 2 {
				return true
			}
		}
		return false
	})
	for range 20 {
		if said, err := through(bound(p, true), "pass.test", "/", roots); err != nil || !strings.HasPrefix(said, "200 own") {
			t.Fatalf("%q %v", said, err)
		}
	}
}

// A drain waits for what is carried, and then cuts it; an Ingress that goes leaves it
// alone, and new connections are decrypted again.
func TestSSLPassthroughLives(t *testing.T) {
	var last *tls.Conn
	t.Cleanup(func() { // when the proxy has ended
		defer last.Close()
		if _, err := last.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("the connection outlived the drain: %v", err)
		}
	})
	registry := prometheus.NewRegistry()
	files, p, roots := startPassing(t, func(o *proxy.Options) {
		o.GracePeriod, o.Registerer = 100*time.Millisecond, registry
	})
	dial := func(name string) *tls.Conn {
		c, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: name})
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(30 * time.Second))
		return c
	}
	c := dial("pass.test")
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(c)
	ask := func() {
		t.Helper()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
	}
	ask()
	if n := sample(t, registry, "quayside_http_upstream_tunnels"); n != 1 {
		t.Errorf("%v tunnels, want 1", n)
	}
	files.Delete(snapshot.Ingress, snapshot.Key{Namespace: "default", Name: "pass"})
	eventually(t, "new connections are decrypted", func() bool {
		_, err := through(bound(p, true), "pass.test", "/", roots)
		return err != nil && strings.Contains(err.Error(), "unknown authority")
	})
	ask()
	c.Close()
	eventually(t, "it is counted when it has ended", func() bool {
		return sample(t, registry, "quayside_http_upstream_tunnels") == 0
	})
	last = dial("https.test")
	dial("https.test").Close()
	eventually(t, "one is counted that has ended", func() bool {
		return sample(t, registry, "quayside_tls_passthrough_connections_total") == 1
	})
}

// sample returns the sum of the samples of a metric.
func sample(t *testing.T, from prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sum
}
