package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// large-client-header-buffers bounds heads and lines of requests over both protocols,
// from the next request on.
func TestLargeClientHeaderBuffers(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2, o.H2C = true, true
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
	})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), ingress("web", "a.test", "/", "web", number))
	addr := bound(p, false)
	declare := func(value string, lines, heads int) {
		t.Helper()
		files.Put(configMap("wide", "large-client-header-buffers", value))
		eventually(t, value+" is obeyed", func() bool {
			table := p.Table()
			if table == nil || table.Connections == nil {
				return false
			}
			return table.Connections.LineSize == lines && table.Connections.HeadSize == heads
		})
	}
	one := func(n int) string { return "/\nX-Long: " + strings.Repeat("x", n) }
	many := func(n, each int) string {
		b := "/"
		for i := range n {
			b += fmt.Sprintf("\nX-Long-%d: %s", i, strings.Repeat("x", each))
		}
		return b
	}
	for _, k := range []struct {
		value        string
		lines, heads int
		request      string
		status       int
		says         string
	}{
		{"2 1k", 1024, 2048, one(900), 200, "uri=/ "},
		{"2 1k", 1024, 2048, one(1100), 431, "the limit"},
		{"2 1k", 1024, 2048, many(3, 800), 431, "the limit"},
		{"2 1k", 1024, 2048, "/" + strings.Repeat("x", 900), 200, "uri=/x"},
		{"2 1k", 1024, 2048, "/" + strings.Repeat("x", 1100), 414, "the limit"},
		{"2 1k", 1024, 2048, "POST /" + strings.Repeat("x", 1100) + "\n\nbody", 414, "the limit"},
		{"4 8k", 8192, 32768, one(8000), 200, "uri=/ "},
		{"4 8k", 8192, 32768, one(8300), 431, "the limit"},
		{"4 8k", 8192, 32768, many(3, 8000), 200, "uri=/ "},
		{"4 8k", 8192, 32768, many(5, 8000), 431, "the limit"},
		{"4 64k", 65536, 262144, one(65_000), 200, "uri=/ "},
		{"4 64k", 65536, 262144, "POST " + one(65_000) + "\n\nbody", 200, "uri=/ "},
		{"4 64k", 65536, 262144, many(3, 65_000), 200, "uri=/ "},
		{"4 64k", 65536, 262144, one(66_000), 431, "the limit"},
		{"4 64k", 65536, 262144, many(6, 60_000), 431, "the limit"},
		{"1 512k", 262144, 262144, one(200_000), 200, "uri=/ "},
		{"4 8k", 8192, 32768, many(5, 8000), 431, "the limit"}, // again
	} {
		declare(k.value, k.lines, k.heads)
		for name, via := range map[string]http.RoundTripper{"HTTP/1.1": &http.Transport{DisableKeepAlives: true}, "HTTP/2": unencryptedHTTP2(t), "TLS": overTLS(bound(p, true))} {
			if name == "HTTP/2" && len(k.request) > k.heads {
				continue // which Go's client does not send
			}
			status, said := askVia(t, via, addr, "a.test", k.request)
			if status != k.status || !strings.Contains(said, k.says) {
				t.Errorf("%s, %s, %.30q: %d %.200q, want %d", k.value, name, k.request, status, said, k.status)
			}
		}
	}
	declare("1 512k", 262144, 262144)
	if said := fmt.Sprint(p.Table().Problems); !strings.Contains(said, "more than 256k") {
		t.Errorf("that 512k are too much is not told: %s", said)
	}
	files.Put(configMap("wide", "large-client-header-buffers", "8k"))
	eventually(t, "what is no number and size is told, and has no effect", func() bool {
		return strings.Contains(fmt.Sprint(p.Table().Problems), "such as 4 8k") && p.Table().Connections == nil
	})
}

// overTLS sends requests for whatever address to another, over HTTP/1.1 and TLS.
func overTLS(addr string) http.RoundTripper {
	via := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r.URL.Scheme, r.URL.Host = "https", addr
		return via.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// proxy-http-version 1.0 asks a backend as HTTP/1.0 does: with the length of the body,
// on a connection of its own, without upgrades.
func TestProxyHTTPVersion(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s coding=%v length=%d body=%d upgrade=%s connection=%s from=%s ", r.Proto, r.TransferEncoding, r.ContentLength, len(body),
			r.Header.Get("Upgrade"), r.Header.Get("Connection"), r.RemoteAddr)
	}))
	t.Cleanup(web.Close)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")),
		annotated("old", "old.test", map[string]string{"proxy-http-version": "1.0", "proxy-request-buffering": "off"}),
		annotated("new", "new.test", map[string]string{"proxy-http-version": "1.1"}),
		annotated("bad", "bad.test", map[string]string{"proxy-http-version": "1.0; return 200"}),
		ingress("last", "last.test", "/", "web", number))
	addr := bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "last.test", "/"); return code == 200 })
	clients := map[string]*http.Transport{"HTTP/1.1": http.DefaultTransport.(*http.Transport).Clone(), "HTTP/2": unencryptedHTTP2(t)}
	t.Cleanup(clients["HTTP/1.1"].CloseIdleConnections)
	send := func(via http.RoundTripper, host string, body io.Reader, fields ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequest("POST", "http://"+addr+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		for i := 0; i < len(fields); i += 2 {
			req.Header.Set(fields[i], fields[i+1])
		}
		resp, err := via.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(said)
	}
	unsized := func(n int) io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", n))) }
	for name, via := range clients {
		for _, k := range []struct {
			host string
			body io.Reader
			want string
		}{
			{"old.test", strings.NewReader("four"), "HTTP/1.0 coding=[] length=4 body=4 upgrade= "},
			{"old.test", unsized(100), "HTTP/1.0 coding=[] length=100 body=100 upgrade= "},
			{"old.test", unsized(100_000), "HTTP/1.0 coding=[] length=100000 body=100000 upgrade= "},
			{"old.test", nil, "HTTP/1.0 coding=[] length=0 body=0 upgrade= "},
			{"new.test", unsized(100_000), "HTTP/1.1 coding=[chunked] length=-1 body=100000 "},
			{"bad.test", strings.NewReader("four"), "HTTP/1.1 coding=[] length=4 body=4 "},
		} {
			if status, said := send(via, k.host, k.body); status != 200 || !strings.Contains(said, k.want) {
				t.Errorf("%s to %s: %d %s, want %s", name, k.host, status, said, k.want)
			}
		}
		_, first := send(via, "old.test", nil)
		if _, second := send(via, "old.test", nil); first == second {
			t.Errorf("%s: two requests came by one connection: %s", name, second)
		}
		// Beyond what may be kept in memory there are files, which this proxy has none of.
		if status, said := send(via, "old.test", unsized(1<<20+1000)); status != 411 {
			t.Errorf("%s: a long body without a length: %d %s", name, status, said)
		}
	}
	status, said := send(clients["HTTP/1.1"], "old.test", nil, "Connection", "Upgrade", "Upgrade", "websocket")
	if status != 200 || !strings.Contains(said, "upgrade= connection= ") {
		t.Errorf("an upgrade is sent on as %d %s", status, said)
	}
}

// Clients stay where they have a session, be it the Ingress or its canary, unless
// affinity-canary-behavior is legacy: then only those of the Ingress do.
func TestAffinityCanaryBehavior(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		service("new", corev1.ServicePort{Port: 80}), slice("new", "", echo(t, "new")))
	for _, k := range []struct{ host, behavior string }{{"default.test", ""}, {"sticky.test", "sticky"}, {"legacy.test", "legacy"}} {
		canary := map[string]string{"service": "new", "canary": "true", "canary-by-header": "X-Canary"}
		if k.behavior != "" {
			canary["affinity-canary-behavior"] = k.behavior
		}
		files.Put(annotated("main-"+k.host, k.host, map[string]string{"affinity": "cookie"}), annotated("canary-"+k.host, k.host, canary))
	}
	files.Put(ingress("last", "last.test", "/", "web", number))
	addr := bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "last.test", "/"); return code == 200 })
	for name, via := range map[string]http.RoundTripper{"HTTP/1.1": http.DefaultTransport, "HTTP/2": unencryptedHTTP2(t)} {
		for _, k := range []struct{ host, first, then, want string }{
			{"default.test", "always", "never", "new"}, {"default.test", "never", "always", "web"},
			{"sticky.test", "always", "never", "new"}, {"sticky.test", "never", "always", "web"},
			{"legacy.test", "always", "never", "web"}, {"legacy.test", "never", "always", "web"},
		} {
			_, said := askVia(t, via, addr, k.host, "/\nX-Canary: "+k.first)
			_, cookie, told := strings.Cut(said, "Set-Cookie: ")
			cookie, _, _ = strings.Cut(cookie, ";")
			if want := k.host != "legacy.test" || k.first == "never"; told != want {
				t.Errorf("%s %s, %s: a cookie is set: %v, want %v", name, k.host, k.first, told, want)
			}
			if _, again := askVia(t, via, addr, k.host, "/\nX-Canary: "+k.then+"\nCookie: a=b; "+cookie); !strings.Contains(again, k.want+" uri=") {
				t.Errorf("%s %s, %s then %s: %s, want %s", name, k.host, k.first, k.then, again, k.want)
			}
		}
	}
}
