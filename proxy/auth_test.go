package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// gatekeeper is an authentication service. It answers with the status that the
// cookie "say" names, or 401, and remembers what it was asked.
type gatekeeper struct {
	mu    sync.Mutex
	asked []*http.Request
}

func (g *gatekeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.asked = append(g.asked, r)
	g.mu.Unlock()
	w.Header().Set("X-User", "ann; admin")
	if strings.Contains(r.URL.Path, "cookies") {
		w.Header().Add("Set-Cookie", "one=1")
		w.Header().Add("Set-Cookie", "two=2")
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="gate"`)
	status := 401
	if c, err := r.Cookie("say"); err == nil {
		status = map[string]int{"yes": 202, "forbidden": 403, "moved": 302, "broken": 503}[c.Value]
	}
	if status == 302 {
		w.Header().Set("Location", "/yes") // where one would get a 200
	}
	w.WriteHeader(status)
}

// last returns what was asked last, and how often something was.
func (g *gatekeeper) last() (*http.Request, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) == 0 {
		return nil, 0
	}
	return g.asked[len(g.asked)-1], len(g.asked)
}

// listing says which fields it was sent.
func listing() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		r.Header.Write(w)
	})
}

func startGate(t *testing.T) (addr string, gate *gatekeeper) {
	files, p := start(t, trusting)
	gate = &gatekeeper{}
	service1 := httptest.NewServer(gate)
	t.Cleanup(service1.Close)
	backend := httptest.NewServer(listing())
	t.Cleanup(backend.Close)
	const url = "http://gate.default.svc.cluster.local/"
	_, port, _ := strings.Cut(strings.TrimPrefix(service1.URL, "http://"), ":")
	headless := service("pods", corev1.ServicePort{Port: 80})
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	objects := []*struct {
		host    string
		options map[string]string
	}{
		{"auth-url.test", map[string]string{"auth-url": url + "check?uri=$request_uri"}},
		{"no-service.test", map[string]string{"auth-url": "http://missing.default.svc.cluster.local/"}},
		{"no-port.test", map[string]string{"auth-url": "http://gate.default.svc:81/"}},
		{"headless.test", map[string]string{"auth-url": "http://pods.default.svc:" + port + "/"}},
		{"metadata.test", map[string]string{"auth-url": "http://169.254.169.254/latest/meta-data"}},
		{"auth-method.test", map[string]string{"auth-url": url, "auth-method": "POST"}},
		{"auth-signin.test", map[string]string{"auth-url": url, "auth-signin": "https://$host/oauth2/start?rd=$escaped_request_uri"}},
		{"signin-plain.test", map[string]string{"auth-url": url + "cookies", "auth-signin": "https://login.test/start"}},
		{"signin-param.test", map[string]string{"auth-url": url, "auth-signin": "https://login.test/start?a=b", "auth-signin-redirect-param": "back"}},
		{"auth-response-headers.test", map[string]string{"auth-url": url, "auth-response-headers": "X-User , X-Groups"}},
		{"auth-request-redirect.test", map[string]string{"auth-url": url, "auth-request-redirect": "https://$host$uri"}},
		{"auth-request-headers.test", map[string]string{"auth-url": url, "auth-proxy-set-headers": "default/more",
			"auth-request-headers": "X-Gate: $host asks\nX-Original-URL: $request_uri\nX-Forwarded-Proto: $scheme\nUser-Agent:"}},
		{"auth-snippet.test", map[string]string{"auth-url": url, "auth-proxy-set-headers": "default/more", "auth-request-headers": "User-Agent: of a line",
			"auth-snippet": "# of a guide\nproxy_set_header X-Gate \"$host asks\"; proxy_set_header User-Agent none; proxy_set_header X-Forwarded-Host $http_host;\nauth_request_set $who $upstream_http_x_user;",
			"auth-signin":  "https://login.test/start?rd=/&who=${who}"}},
		{"snippet.test", map[string]string{"auth-url": url, "auth-snippet": "proxy_set_header X-Gate a;\nproxy_pass http://elsewhere.test;"}},
		{"alone.test", map[string]string{"auth-snippet": "proxy_set_header X-Gate a;"}},
		{"lines.test", map[string]string{"auth-url": url, "auth-request-headers": "X-Gate: yes\nHost: $arg_to"}},
		{"signin-answer.test", map[string]string{"auth-url": url, "auth-signin": "https://login.test/start?rd=/&who=$upstream_http_x_user&no=$upstream_http_x_none",
			"auth-cache-key": "$remote_addr"}},
		{"signin-host.test", map[string]string{"auth-url": url, "auth-signin": "https://$upstream_http_x_user/start"}},
		{"auth-proxy-set-headers.test", map[string]string{"auth-url": url, "auth-proxy-set-headers": "default/more"}},
		{"cookies.test", map[string]string{"auth-url": url + "cookies"}},
		{"auth-always-set-cookie.test", map[string]string{"auth-url": url + "cookies", "auth-always-set-cookie": "true"}},
		{"auth-cache-key.test", map[string]string{"auth-url": url, "auth-cache-key": "$cookie_say$remote_addr", "auth-cache-duration": "202 1h", "auth-response-headers": "X-User"}},
		{"satisfy.test", map[string]string{"auth-url": url, "satisfy": "any", "allowlist-source-range": "10.0.0.0/8", "auth-response-headers": "X-User"}},
		{"bad.test", map[string]string{"auth-url": "http://$http_x.test/"}},
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(backend.URL, "http://")),
		service("gate", corev1.ServicePort{Port: 80}), slice("gate", "", strings.TrimPrefix(service1.URL, "http://")),
		headless, slice("pods", "", strings.TrimPrefix(service1.URL, "http://")),
		configMap("more", "X-Gate", "$request_method of $host", "X-Original-Method", ""))
	for _, o := range objects {
		files.Put(annotated(strings.ReplaceAll(o.host, ".", "-"), o.host, o.options))
	}
	files.Put(ingress("last", "last.test", "/", "web", number))
	addr = bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "last.test", "/"); return code == 200 })
	return addr, gate
}

// TestAuthURL asks for auth-url and its companions over HTTP, with a real service.
func TestAuthURL(t *testing.T) {
	addr, _ := startGate(t)
	const yes = "\nCookie: say=yes"
	for _, k := range []struct {
		key, host, request string
		status             int
		says, lacks        string
	}{
		{"auth-url", "auth-url.test", "/", 401, `Bearer realm="gate"`, ""},
		{"auth-url", "auth-url.test", "/" + yes, 200, "Cookie: say=yes", ""},
		{"auth-url", "auth-url.test", "/\nCookie: say=forbidden", 403, "", ""},
		{"auth-url", "auth-url.test", "/\nCookie: say=moved", 500, "", "Location"},
		{"auth-url", "auth-url.test", "/\nCookie: say=broken", 500, "", ""},
		{"auth-url", "no-service.test", "/" + yes, 500, "", ""},
		{"auth-url", "no-port.test", "/" + yes, 500, "", ""},
		{"auth-url", "headless.test", "/" + yes, 200, "Cookie: say=yes", ""},
		{"auth-url", "metadata.test", "/" + yes, 500, "", ""},
		{"auth-url", "bad.test", "/" + yes, 503, "may not decide which host", ""},
		{"auth-signin", "auth-signin.test", "/a/b?c=d&e", 302, "Location: https://auth-signin.test/oauth2/start?rd=%2Fa%2Fb%3Fc%3Dd%26e\r\n", ""},
		{"auth-signin", "auth-signin.test", "/\nCookie: say=forbidden", 403, "", "Location"},
		{"auth-signin", "auth-signin.test", "/%0d%0aX-Evil:%20yes", 302, "rd=%2F%250d%250aX-Evil%3A%2520yes\r\n", "X-Evil: yes"},
		{"auth-signin", "signin-plain.test", "/x?y\nX-Forwarded-Proto: https", 302, "Location: https://login.test/start?rd=https://signin-plain.test%2Fx%3Fy\r\n", ""},
		{"auth-signin", "signin-plain.test", "/x", 302, "Set-Cookie: one=1\r\nSet-Cookie: two=2\r\n", ""},
		{"auth-signin-redirect-param", "signin-param.test", "/x", 302, "Location: https://login.test/start?a=b&back=http://signin-param.test%2Fx\r\n", ""},
		{"auth-signin", "signin-answer.test", "/", 302, "Location: https://login.test/start?rd=/&who=ann;%20admin&no=\r\n", ""},
		{"auth-signin", "signin-answer.test", "/", 302, "Location: https://login.test/start?rd=/&who=ann;%20admin&no=\r\n", ""}, // remembered
		{"auth-signin", "signin-host.test", "/" + yes, 503, "may not decide which host", ""},
		{"auth-snippet", "auth-snippet.test", "/", 302, "Location: https://login.test/start?rd=/&who=ann;%20admin\r\n", ""},
		{"auth-snippet", "snippet.test", "/" + yes, 503, "line 2: of an auth-snippet nothing is obeyed but proxy_set_header", ""},
		{"auth-snippet", "alone.test", "/" + yes, 503, "is missing beside its companions", ""},
		{"auth-request-headers", "lines.test", "/" + yes, 503, "$arg_to may not decide which host is meant", ""},
		{"auth-response-headers", "auth-response-headers.test", "/" + yes + "\nX-User: root\nX-Groups: wheel", 200, "X-User: ann; admin\r\n", "wheel"},
		{"auth-response-headers", "satisfy.test", "/\nX-Forwarded-For: 10.1.1.1\nX-User: root", 200, "", "X-User"},
		{"satisfy", "satisfy.test", "/" + yes, 200, "X-User: ann", ""},
		{"satisfy", "satisfy.test", "/", 401, "", ""},
		{"auth-always-set-cookie", "cookies.test", "/" + yes, 200, "Set-Cookie: one=1\r\nSet-Cookie: two=2\r\n", ""},
		{"auth-always-set-cookie", "cookies.test", "/missing" + yes, 404, "", "Set-Cookie"},
		{"auth-always-set-cookie", "cookies.test", "/", 401, "", "Set-Cookie"},
		{"auth-always-set-cookie", "auth-always-set-cookie.test", "/missing" + yes, 404, "Set-Cookie: one=1\r\nSet-Cookie: two=2\r\n", ""},
		{"auth-always-set-cookie", "auth-always-set-cookie.test", "/", 401, "Set-Cookie: one=1\r\n", ""},
	} {
		t.Run(k.key, func(t *testing.T) {
			status, said := ask(t, addr, k.host, k.request)
			if status != k.status || !strings.Contains(said, k.says) || k.lacks != "" && strings.Contains(said, k.lacks) {
				t.Errorf("%s %q: %d %q, want %d with %q and without %q", k.host, k.request, status, said, k.status, k.says, k.lacks)
			}
		})
	}
}

// TestWhatAuthServicesAreAsked: the question has what ingress-nginx sends.
func TestWhatAuthServicesAreAsked(t *testing.T) {
	addr, gate := startGate(t)
	const fields = "\nCookie: say=yes\nAuthorization: Bearer x\nX-Forwarded-For: 192.0.2.7\nX-Original-URL: forged\nX-Original-URI: forged\nX-Gate: forged\nIf-None-Match: x\nUser-Agent: it"
	for _, k := range []struct {
		key, host, request string
		want               map[string]string // by field, and METHOD, TARGET, HOST
	}{
		{"auth-url", "auth-url.test", "PUT /a%20b?c=d" + fields, map[string]string{
			"METHOD": "GET", "TARGET": "/check?uri=/a%20b?c=d", "HOST": "gate.default.svc.cluster.local",
			"X-Original-Url": "http://auth-url.test/a%20b?c=d", "X-Original-Method": "PUT", "X-Sent-From": "nginx-ingress-controller",
			"X-Real-Ip": "192.0.2.7", "X-Forwarded-For": "192.0.2.7", "X-Auth-Request-Redirect": "/a%20b?c=d", "X-Forwarded-Proto": "",
			"Authorization": "Bearer x", "Content-Length": "", "If-None-Match": "", "User-Agent": "it", "X-Original-Uri": ""}},
		{"auth-method", "auth-method.test", "/x" + fields, map[string]string{"METHOD": "POST", "X-Original-Uri": "/x", "X-Original-Method": "GET"}},
		{"auth-request-redirect", "auth-request-redirect.test", "/a%0Ab%41?q" + fields, map[string]string{
			"X-Auth-Request-Redirect": "https://auth-request-redirect.test/a%0AbA"}},
		{"auth-proxy-set-headers", "auth-proxy-set-headers.test", "DELETE /" + fields, map[string]string{
			"X-Gate": "DELETE of auth-proxy-set-headers.test"}},
		{"auth-snippet", "auth-snippet.test", "DELETE /" + fields, map[string]string{"X-Gate": "auth-snippet.test asks", "User-Agent": "of a line"}},
		{"auth-request-headers", "auth-request-headers.test", "/x?y" + fields + "\nX-Forwarded-Host: forged", map[string]string{
			"X-Gate": "auth-request-headers.test asks", "X-Original-Url": "/x?y", "X-Forwarded-Proto": "http", "User-Agent": "", "X-Original-Method": "",
			"X-Forwarded-Host": "forged", "X-Real-Ip": "192.0.2.7"}}, // of a trusted proxy
	} {
		t.Run(k.key, func(t *testing.T) {
			if status, said := ask(t, addr, k.host, k.request); status != 200 {
				t.Fatalf("%d %s", status, said)
			}
			r, _ := gate.last()
			for name, want := range k.want {
				got := r.Header.Get(name)
				switch name {
				case "METHOD":
					got = r.Method
				case "TARGET":
					got = r.RequestURI
				case "HOST":
					got = r.Host
				}
				if got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if len(r.Header["X-Gate"]) > 1 || len(r.Header["X-Original-Url"]) != 1 || len(r.Header["X-Original-Uri"]) > 1 {
				t.Errorf("doubled fields: %v", r.Header)
			}
		})
	}
}

// TestAuthCache: auth-cache-key and auth-cache-duration say what is asked once.
func TestAuthCache(t *testing.T) {
	addr, gate := startGate(t)
	t.Run("auth-cache-key", func(t *testing.T) {
		for range 3 {
			if status, said := ask(t, addr, "auth-cache-key.test", "/\nCookie: say=yes"); status != 200 || !strings.Contains(said, "X-User: ann") {
				t.Fatalf("%d %s", status, said)
			}
		}
		if _, n := gate.last(); n != 1 {
			t.Errorf("asked %d times for one key, want once", n)
		}
	})
	t.Run("auth-cache-duration", func(t *testing.T) {
		for range 3 { // 401 is not among what auth-cache-duration lists
			if status, _ := ask(t, addr, "auth-cache-key.test", "/"); status != 401 {
				t.Fatal(status)
			}
		}
		if _, n := gate.last(); n != 4 {
			t.Errorf("asked %d times, want three times more: refusals are not remembered", n)
		}
	})
	ask(t, addr, "auth-url.test", "/\nCookie: say=yes")
	if _, n := gate.last(); n != 5 {
		t.Error("what one route remembers counted for another")
	}
}
