package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// unencryptedHTTP2 is a client that knows that a server speaks HTTP/2.
func unencryptedHTTP2(t *testing.T) *http.Transport {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// A listener that serves HTTP/2 to who knows it serves HTTP/1.1 to everybody else,
// and one that was not told so refuses it.
func TestPriorKnowledge(t *testing.T) {
	for _, h2c := range []bool{true, false} {
		t.Run(fmt.Sprint(h2c), func(t *testing.T) {
			files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, h2c })
			files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), ingress("web", "a.example", "/", "web", number))
			addr := bound(p, false)
			eventually(t, "the route is served", func() bool { code, _ := get(t, addr, "a.example", "/"); return code == 200 })
			req, _ := http.NewRequest("GET", "http://"+addr+"/", nil)
			req.Host = "a.example"
			resp, err := unencryptedHTTP2(t).RoundTrip(req)
			if !h2c {
				if err == nil {
					t.Errorf("served over %s", resp.Proto)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, _ := io.ReadAll(resp.Body); resp.Proto != "HTTP/2.0" || string(body) != "web xff=127.0.0.1 proto=http" {
				t.Errorf("%s %q", resp.Proto, body)
			}
			// Requests that begin like the preface, or come byte by byte.
			for _, text := range []string{"PRIVATE /x HTTP/1.1\r\nHost: a.example\r\n\r\n", "PRI * HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"} {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(30 * time.Second))
				for i := range len(text) {
					io.WriteString(c, text[i:i+1])
				}
				var got [13]byte
				if _, err := io.ReadFull(c, got[:]); err != nil || string(got[:9]) != "HTTP/1.1 " {
					t.Errorf("%q: %q, %v", text, got, err)
				}
			}
		})
	}
}

// Where both are spoken, a connection that begins with neither a request line of HTTP/1
// nor the preface of HTTP/2 ends without an answer (RFC 9113 section 3.4): to a client of
// HTTP/2, one of HTTP/1.1 is a frame that makes no sense. Behind a request it is
// malformed HTTP/1.1.
func TestPrefaceThatIsAnother(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), ingress("web", "a.example", "/", "web", number))
	addr := bound(p, false)
	eventually(t, "the route is served", func() bool { code, _ := get(t, addr, "a.example", "/"); return code == 200 })
	const request, other = "HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n", "INVALID CONNECTION PREFACE\r\n\r\n"
	for text, statuses := range map[string][]string{
		other:                              nil,
		"PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n": nil,
		"GET /\r\n\r\n":                    nil,
		"GET / HTTP/1.1\r\nHost: a\r\nX Y: Z\r\n\r\n": {"400"},
		request + other: {"200", "400"},
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, text)
		got, err := io.ReadAll(c)
		var said []string
		for _, answer := range strings.Split(string(got), "HTTP/1.1 ")[1:] {
			said = append(said, answer[:3])
		}
		if err != nil || !slices.Equal(said, statuses) || statuses == nil && len(got) > 0 {
			t.Errorf("%q: %q, %v, want %v", text, got, err, statuses)
		}
	}
}

// A connection of HTTP/2 that came while a drain went on accepting, and never asked
// anything, does not hold it up, as one of HTTP/1.1 does not; a request under way is
// still answered.
func TestDrainLeavesTheSilentOfHTTP2(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-release
		io.WriteString(w, "done")
	}))
	t.Cleanup(slow.Close)
	files, p, stop := startUntil(t, func(o *proxy.Options) {
		o.HTTP2, o.H2C, o.LameDuck, o.GracePeriod = true, true, time.Second, 16*time.Second // a quarter is for the silent
	})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(slow.URL, "http://")), ingress("web", "a.example", "/", "web", number))
	addr := bound(p, false)
	eventually(t, "the route is there", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) > 0 })
	answered := make(chan string, 1)
	go func() {
		req, _ := http.NewRequest("GET", "http://"+addr+"/", nil)
		req.Host = "a.example"
		resp, err := unencryptedHTTP2(t).RoundTrip(req)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-asked
	began := time.Now()
	stopped := make(chan time.Duration)
	go func() { stop(); stopped <- time.Since(began) }()
	eventually(t, "the drain has begun, and goes on accepting", func() bool {
		resp, err := http.Get("http://" + addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.Close
	})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, http2.ClientPreface)
	if err := http2.NewFramer(c, c).WriteSettings(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*time.Second, func() { close(release) })
	if got := <-answered; got != "done" {
		t.Errorf("the request under way got %q", got)
	}
	if took := <-stopped; took > 12*time.Second {
		t.Errorf("the drain took %v, and was to end after 5 s", took)
	}
}

// A client that was given an address asks for no server name. It is served every host, by
// both versions of HTTP: no other connection would suit it better. (TestAuthTLS and
// TestSSLPassthroughIsNeverServedDecrypted have the hosts that insist on a name.)
func TestNoServerName(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2 = true })
	secured := ingress("shop", "shop.example", "/", "web", number)
	secured.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.example"}, SecretName: "shop"}}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), secured, ingress("plain", "plain.example", "/", "web", number),
		certificate.Secret(t, "default/shop", time.Now().Add(time.Hour), "shop.example"))
	addr := bound(p, true)
	eventually(t, "the routes are served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 2 })
	for _, http2 := range []bool{false, true} {
		tr := clientOf(t, addr, http2, nil)
		for host, want := range map[string]int{"shop.example": 200, "plain.example": 200, "other.example": 404} {
			if status, said := by(t, tr, "192.0.2.1", host, "/"); status != want {
				t.Errorf("HTTP/2 %v, %s: %d %s, want %d", http2, host, status, said, want)
			}
		}
	}
}

// HTTPS offers HTTP/2, to real clients, for the hosts that a connection's
// certificate is for, and HTTP/1.1 to who wants that.
func TestHTTP2OverTLS(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2 = true })
	var objects []snapshot.Object
	secure := func(name string, hosts ...string) *corev1.Secret {
		secret := certificate.Secret(t, "default/"+name, time.Now().Add(time.Hour), hosts...)
		for i, host := range hosts {
			ing := ingress(fmt.Sprint(name, i), host, "/", "web", number)
			ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: name}}
			objects = append(objects, ing)
		}
		objects = append(objects, secret)
		return secret
	}
	shop := secure("shop", "shop.example", "www.shop.example")
	secure("bank", "bank.example")
	files.Put(append(objects, service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")))...)
	addr := bound(p, true)
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: certificate.Roots(shop)},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	defer tr.CloseIdleConnections()
	ask := func(host string) (string, int) {
		req, _ := http.NewRequest("POST", "https://shop.example/x", strings.NewReader("hello"))
		req.Host = host
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return err.Error(), 0
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.Proto + " " + string(body), resp.StatusCode
	}
	eventually(t, "HTTPS is served", func() bool { _, code := ask("shop.example"); return code == 200 })
	for host, want := range map[string]int{"shop.example": 200, "www.shop.example": 200, "bank.example": 421, "other.example": 421} {
		if got, code := ask(host); code != want || !strings.HasPrefix(got, "HTTP/2.0 ") {
			t.Errorf("%s: %d %s", host, code, got)
		}
	}
	plain := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certificate.Roots(shop)}, DialContext: tr.DialContext}}
	defer plain.CloseIdleConnections()
	if resp, err := plain.Get("https://shop.example/"); err != nil || resp.Proto != "HTTP/1.1" {
		t.Errorf("a client of HTTP/1.1: %v", err)
	} else {
		resp.Body.Close()
	}
	for _, command := range []string{
		"curl -sk --http2 --connect-to shop.example:443:" + addr + " -w _%{http_version} -d hello https://shop.example/curl",
		"nghttp --no-verify-peer -m 20 -H :authority:shop.example https://" + addr + "/nghttp",
	} {
		words := strings.Fields(command)
		if _, err := exec.LookPath(words[0]); err != nil {
			if os.Getenv("CI") != "" {
				t.Errorf("%s is not installed (Debian packages curl, nghttp2-client)", words[0])
			}
			t.Logf("%s is not installed", words[0])
			continue
		}
		out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
		if want := "web uri=/" + words[0] + " host=shop.example"; err != nil || !strings.Contains(string(out), want) ||
			words[0] == "curl" && !strings.HasSuffix(string(out), "_2") {
			t.Errorf("%s: %v: %s", words[0], err, out)
		}
	}
}
