package proxy_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestGlobalAuth: a service that the ConfigMap names is asked about every route that
// has none of its own and did not decline, as the keys global-auth-* say.
func TestGlobalAuth(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap, o.Routes.Classes.Adopt = snapshot.Key{Namespace: "default", Name: "wide"}, []string{ingressclass.NginxController}
	})
	gate := &gatekeeper{}
	asked, other, web := httptest.NewServer(gate), httptest.NewServer(http.NotFoundHandler()), httptest.NewServer(listing())
	defer asked.Close()
	defer other.Close()
	defer web.Close()
	for name, s := range map[string]*httptest.Server{"web": web, "gate": asked, "other": other} {
		files.Put(service(name, corev1.ServicePort{Port: 80}), slice(name, "", strings.TrimPrefix(s.URL, "http://")))
	}
	const url = "http://gate.default.svc.cluster.local/"
	files.Put(annotated("plain", "plain.test", nil), annotated("out", "out.test", map[string]string{"enable-global-auth": "false"}),
		annotated("in", "in.test", map[string]string{"enable-global-auth": "perhaps"}), annotated("own", "own.test", map[string]string{"auth-url": "http://other.default.svc/"}),
		annotated("listed", "listed.test", map[string]string{"denylist-source-range": "127.0.0.0/8"}))
	ruled := annotated("ruled", "ruled.test", map[string]string{"path": "/open"})
	ruled.Spec.IngressClassName = new(ingressclass.NginxName)
	files.Put(ruled)
	files.Put(annotated("moved", "moved.test", map[string]string{"configuration-snippet": "rewrite ^/open/x$ /elsewhere break; rewrite ^/closed$ /open/closed break; rewrite ^/open/away$ /away last; rewrite ^/away/back$ /open/back last;"}))
	addr := bound(p, false)
	open := map[string]string{"no-auth-locations": "/open", "allow-snippet-annotations": "true", "annotations-risk-level": "Critical"}
	const yes = "\nCookie: say=yes"
	for _, k := range []struct {
		key           string
		data          map[string]string
		host, request string
		status        int
		says          string
	}{
		{"global-auth-url", nil, "plain.test", "/", 401, `Bearer realm="gate"`},
		{"global-auth-url", nil, "plain.test", "/" + yes, 200, "Cookie: say=yes"},
		{"global-auth-url", nil, "listed.test", "/" + yes, 403, "may not pass"},
		{"global-auth-url", nil, "own.test", "/" + yes, 500, ""},
		{"global-auth-url", nil, "unknown.test", "/", 404, ""},
		{"enable-global-auth", nil, "out.test", "/", 200, ""},
		{"enable-global-auth", nil, "in.test", "/", 401, ""},
		{"global-auth-method", map[string]string{"global-auth-method": "BREW"}, "plain.test", "/" + yes, 503, "global-auth-method"},
		{"global-auth-method", map[string]string{"global-auth-method": "POST"}, "plain.test", "/posted" + yes, 200, ""},
		{"global-auth-signin", map[string]string{"global-auth-signin": "https://login.test/start"}, "plain.test", "/x", 302, "Location: https://login.test/start?rd=http://plain.test%2Fx\r\n"},
		{"global-auth-signin", map[string]string{"global-auth-signin": "javascript:x"}, "plain.test", "/" + yes, 503, "global-auth-signin"},
		{"global-auth-signin-redirect-param", map[string]string{"global-auth-signin": "https://login.test/start", "global-auth-signin-redirect-param": "back"}, "plain.test", "/x", 302, "?back=http"},
		{"global-auth-response-headers", map[string]string{"global-auth-response-headers": "X-User"}, "plain.test", "/" + yes + "\nX-User: root", 200, "X-User: ann; admin\r\n"},
		{"global-auth-request-redirect", map[string]string{"global-auth-request-redirect": "https://$host/back"}, "plain.test", "/redirected" + yes, 200, ""},
		{"global-auth-request-headers", map[string]string{"global-auth-request-headers": "X-Gate: $request_method of $host"}, "plain.test", "/" + yes, 200, ""},
		{"global-auth-request-headers", map[string]string{"global-auth-request-headers": "X-Gate"}, "plain.test", "/" + yes, 503, "no line of NAME: VALUE"},
		{"global-auth-snippet", map[string]string{"global-auth-snippet": "proxy_set_header X-Gate '$request_method of $host';"}, "plain.test", "/" + yes, 200, ""},
		{"global-auth-snippet", map[string]string{"global-auth-snippet": "deny all;"}, "plain.test", "/" + yes, 503, "nothing is obeyed but proxy_set_header"},
		{"global-auth-cache-key", map[string]string{"global-auth-cache-key": "$cookie_say", "global-auth-cache-duration": "202 1h"}, "plain.test", "/" + yes, 200, ""},
		{"global-auth-cache-duration", map[string]string{"global-auth-url": url + "check", "global-auth-cache-key": "$http_cookie", "global-auth-cache-duration": "401 5m"}, "plain.test", "/" + yes, 200, ""},
		{"global-auth-always-set-cookie", map[string]string{"global-auth-url": url + "cookies", "global-auth-always-set-cookie": "true"}, "plain.test", "/missing" + yes, 404, "Set-Cookie: one=1\r\n"},
		{"no-auth-locations", nil, "plain.test", "/.well-known/acme-challenge/x", 200, ""},
		{"no-auth-locations", nil, "plain.test", "/.well-known/acme-challenge/../../x", 401, ""},
		{"no-auth-locations", nil, "plain.test", "/.well-known/acme-challenge/x%2F..%2F..%2Fx", 400, ""},
		{"no-auth-locations", nil, "plain.test", "/.well-known/acme-challenge/x%3F", 401, ""},
		{"no-auth-locations", nil, "plain.test", "/.well-known/acme-challenger", 401, ""},
		{"no-auth-locations", map[string]string{"no-auth-locations": "/open/, /health"}, "plain.test", "/open/x", 200, ""},
		{"no-auth-locations", map[string]string{"no-auth-locations": "/open/, /health"}, "plain.test", "/healthy", 401, ""},
		{"no-auth-locations", map[string]string{"no-auth-locations": "/open"}, "ruled.test", "/open/x", 200, ""},
		{"no-auth-locations", map[string]string{"no-auth-locations": "/open/x"}, "ruled.test", "/open/x", 401, ""}, // of which there is no rule
		{"no-auth-locations", open, "moved.test", "/open/x", 200, ""},                                              // the path counts by which the rule was found
		{"no-auth-locations", open, "moved.test", "/closed", 401, ""},
		{"no-auth-locations", open, "moved.test", "/open/away", 401, ""},
		{"no-auth-locations", open, "moved.test", "/away/back", 200, ""},
	} {
		t.Run(k.key, func(t *testing.T) {
			cm := configMap("wide", "global-auth-url", url)
			maps.Copy(cm.Data, k.data)
			files.Put(cm)
			var status int
			var said string
			defer func() {
				if t.Failed() {
					t.Logf("%v, %s %q: %d %q", k.data, k.host, k.request, status, said)
				}
			}()
			eventually(t, k.key+" acts", func() bool {
				status, said = ask(t, addr, k.host, k.request)
				return status == k.status && strings.Contains(said, k.says)
			})
			if what, holds := told(gate, k.key, func() { ask(t, addr, k.host, k.request) }); holds != nil && k.status == 200 {
				eventually(t, what, holds)
			}
		})
	}
}

// told is what the service that is asked must see by a key, beside what the client gets:
// in words, and as what must hold in the end. request sends a request that passes.
func told(gate *gatekeeper, key string, request func()) (what string, holds func() bool) {
	// asked is how often it is asked for n requests.
	asked := func(n int) int {
		_, before := gate.last()
		for range n {
			request()
		}
		_, after := gate.last()
		return after - before
	}
	switch key {
	case "global-auth-method":
		return "it is asked so", func() bool { request(); q, _ := gate.last(); return q.Method == "POST" }
	case "global-auth-cache-key":
		return "it is not asked again", func() bool { return asked(1) == 0 }
	case "global-auth-cache-duration": // what it does not list is asked for each time
		return "it is asked again and again", func() bool { return asked(3) == 3 }
	case "global-auth-request-headers", "global-auth-snippet":
		return "it is asked with them", func() bool { request(); q, _ := gate.last(); return q.Header.Get("X-Gate") == "GET of plain.test" }
	case "global-auth-request-redirect":
		return "it is told so", func() bool {
			request()
			q, _ := gate.last()
			return q.Header.Get("X-Auth-Request-Redirect") == "https://plain.test/back"
		}
	}
	return "", nil
}
