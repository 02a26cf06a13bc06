package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// TestMirror asks for mirror-target, mirror-host, mirror-request-headers and mirror-request-body
// over HTTP, and for mirror in snippets.
func TestMirror(t *testing.T) {
	files, p := start(t, nil)
	copies := make(chan string, 16)
	hold := make(chan struct{})
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		copies <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Host, " ", r.Header.Get("X-A"), " ", len(body), r.Header.Get("X-Uri"))
		if r.Host == "inner.test" {
			<-hold // nobody waits for it
		}
	}))
	defer mirror.Close()
	defer close(hold)
	const to = "http://mirror.default.svc"
	snippets := func(name, place, host string) *networkingv1.Ingress {
		return annotated(name, name+".test", map[string]string{"configuration-snippet": place, "server-snippet": host})
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		service("mirror", corev1.ServicePort{Port: 80}), slice("mirror", "", strings.TrimPrefix(mirror.URL, "http://")),
		annotated("target", "mirror-target.test", map[string]string{"mirror-target": to + "$request_uri", "rewrite-target": "/other"}),
		annotated("host", "mirror-host.test", map[string]string{"mirror-target": to + "/x", "mirror-host": "inner.test"}),
		annotated("body", "mirror-request-body.test", map[string]string{"mirror-target": to, "mirror-request-body": "off"}),
		annotated("fields", "mirror-request-headers.test", map[string]string{"mirror-target": to, "mirror-request-headers": "X-Uri: of $request_uri\nx-a:\nX-None: $http_x_none"}),
		snippets("all", `mirror /mirror;`, `location = /mirror { internal; proxy_pass `+to+`$request_uri; }`),
		snippets("heads", `set $gate "the gate"; mirror /mirror; mirror_request_body off;`, `location /mir { internal; set $to `+to+`; proxy_pass $to/copy; proxy_set_header Host inner.test; proxy_set_header X-Uri "$gate $request_uri"; proxy_set_header X-A ""; }`),
		snippets("given", `mirror /mirror/a;`, `location ^~ /mirror { internal; proxy_pass `+to+`:80/copies; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_http_version 1.1; proxy_pass_request_headers on; }`),
		snippets("server", ``, `mirror /mirror; location = /mirror { internal; proxy_pass `+to+`; }`),
		annotated("deny", "denied.test", map[string]string{"mirror-target": to, "denylist-source-range": "127.0.0.0/8"}),
		annotated("bad", "bad.test", map[string]string{"mirror-target": "http://$http_x/"}))
	addr := bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "bad.test", "/"); return code == 200 })
	for _, k := range []struct{ key, host, request, want string }{
		{"mirror-target", "mirror-target.test", "/a%20b?c=d\nX-A: b", "GET /a%20b?c=d mirror.default.svc b 0"},
		{"mirror-target", "mirror-target.test", "PUT /\n\nshort", "PUT / mirror.default.svc  5"},
		{"mirror-target", "mirror-target.test", "POST /\n\n" + strings.Repeat("x", 100_000), "POST / mirror.default.svc  100000"},
		{"mirror-host", "mirror-host.test", "/a?b=c%20d", "GET /x?b=c%20d inner.test  0"},
		{"mirror-request-headers", "mirror-request-headers.test", "/a\nX-A: b\nX-Uri: mine", "GET / mirror.default.svc  0of /a"},
		{"all", "all.test", "POST /a%20b?c=d\nX-A: b\n\nbody", "POST /a%20b?c=d mirror.default.svc b 4"},
		{"heads", "heads.test", "POST /a\nX-A: b\n\nbody", "POST /copy inner.test  0the gate /a"},
		{"given", "given.test", "POST /a?b\nX-A: b\n\nbody", "POST /copies/a?b mirror.default.svc:80 b 0"},
		{"server", "server.test", "/a", "GET /mirror mirror.default.svc  0"},
		{"mirror-request-body", "mirror-request-body.test", "POST /\n\nbody", "POST / mirror.default.svc  0"},
	} {
		t.Run(k.key, func(t *testing.T) {
			if status, said := ask(t, addr, k.host, k.request); status != 200 {
				t.Fatalf("%d %s", status, said)
			}
			select {
			case got := <-copies:
				if got != k.want {
					t.Errorf("%q, want %q", got, k.want)
				}
			case <-time.After(30 * time.Second):
				t.Error("no copy came")
			}
		})
	}
	if status, _ := ask(t, addr, "denied.test", "/"); status != 403 {
		t.Error(status)
	}
	if status, _ := ask(t, addr, "mirror-target.test", "POST /\n\n"+strings.Repeat("x", 2<<20)); status != 200 {
		t.Error(status)
	}
	ask(t, addr, "mirror-host.test", "/") // comes after what must not come
	select {
	case got := <-copies:
		if got != "GET /x inner.test  0" {
			t.Errorf("%q was copied", got)
		}
	case <-time.After(30 * time.Second):
		t.Error("no copy came")
	}
}
