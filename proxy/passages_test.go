package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/dns"
)

// TestPassages: a location with proxy_pass is a route of its own. What the Ingress says of its
// paths does not hold there, what it and others say of the host does, and whose Service is not
// there, it is closed.
func TestPassages(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	others, ends := service("api", corev1.ServicePort{Port: 80}), slice("api", "", listenerOf(t, "others"))
	others.Namespace, ends.Namespace = "other", "other"
	files.Put(
		service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")),
		service("api", corev1.ServicePort{Port: 8080}), slice("api", "", listenerOf(t, "api")), others, ends,
		sameUsersSecret(),
	)
	mover := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://mover.default.svc/v1/login?to="+r.RequestURI)
		w.WriteHeader(302)
	}))
	t.Cleanup(mover.Close)
	files.Put(service("mover", corev1.ServicePort{Port: 80}), slice("mover", "", strings.TrimPrefix(mover.URL, "http://")),
		annotated("secure", "secure.test", map[string]string{"tls": "secure", "ssl-redirect": "true", "server-snippet": `
location /api/ { proxy_pass http://mover.default.svc/v1/; }
location /kept { proxy_pass http://mover.default.svc; proxy_redirect off; }
location /told { proxy_pass http://mover.default.svc; proxy_redirect http://mover.default.svc/v1/ /v2/; }
location /same { proxy_pass http://mover.default.svc; }`}))
	files.Put(annotated("named", "named.test", map[string]string{
		"configuration-snippet": "error_page 404 = @other; proxy_intercept_errors on; proxy_set_header X-Own of-app;",
		"server-snippet":        "location @other { proxy_pass http://api.default.svc:8080; }",
	}))
	ing := annotated("app", "app.test", map[string]string{
		"auth-type": "basic", "auth-secret": "users", "server-alias": "alias.test", "request-headers": "X-Own: of app", "response-headers": "X-Own: of app", "enable-cors": "true",
		"server-snippet": `
location /api/ { proxy_pass http://api.default.svc.cluster.local:8080/v1/; proxy_read_timeout 5m; client_max_body_size 3; }
location /given { proxy_pass http://api.default.svc:8080; proxy_set_header Host inner.test; }
location = /gone { proxy_pass http://gone.default.svc; }
location ~ ^/part/(?<rest>.*)$ { proxy_pass http://api.default.svc:8080/v2/$1$is_args$args; }
location /set { set $to "/a?b"; proxy_pass http://api.default.svc:8080$uri?of=$arg_y&to=$to; }
location = /others { proxy_pass http://api.other.svc; }`,
	})
	second := ing.Spec.Rules[0]
	second.Host = "second.test"
	ing.Spec.Rules = append(ing.Spec.Rules, second)
	files.Put(ing, annotated("denied", "app.test", map[string]string{"path": "/none", "denied-paths": "/api/secret"}))
	eventually(t, "the routes are served", func() bool {
		a, _ := get(t, addr, "app.test", "/given")
		b, _ := get(t, addr, "app.test", "/api/secret")
		return a == 200 && b == 403
	})
	expectAnswers(t, addr, func(_ string, status int, said string) bool { return status < 400 && strings.Contains(said, "of app") }, map[string]string{
		"app.test /x":                         "401|",
		"app.test /api/x?y":                   `200|api GET /v1/x?y host=api.default.svc.cluster.local:8080`,
		"alias.test /api/x":                   "200|api GET /v1/x",
		"second.test /api/x":                  "200|api GET /v1/x",
		"app.test /api":                       "301|Location: /api/",
		"app.test /given/x":                   "200|api GET /given/x host=inner.test",
		"app.test /api/secret/x":              "403|",
		"app.test /gone":                      "503|",
		"app.test /gone/x":                    "401|",
		"app.test /others":                    "200|others GET /others",
		"app.test /part/a%20b%3Fc?y":          "200|api GET /v2/a%20b%3Fc?y",
		"app.test /part/":                     "200|api GET /v2/ ",
		"app.test /set?y=1%0d":                "200|api GET /set?of=1%0d&to=/a?b",
		"app.test POST /api/x\n\nbody":        "413|",
		"named.test /status/404?a":            "404|api GET /status/404?a",
		"named.test DELETE /status/404":       "404|api DELETE /status/404",
		"named.test POST /status/404\n\nbody": "404|web POST /status/404", // the body is not there any more
		"secure.test /x":                      "308|Location: https://secure.test/x",
		"secure.test /api/x":                  "302|Location: /api/login?to=/v1/x",
		"secure.test /kept":                   "302|Location: http://mover.default.svc/v1/login",
		"secure.test /told":                   "302|Location: /v2/login",
		"secure.test /same":                   "302|Location: /v1/login",
	})
	st, _ := p.State().(proxy.State)
	for _, want := range []proxy.RouteState{
		{Host: "app.test", Path: "/api/", Type: "Prefix", Ingress: "default/app", Service: "default/api", Port: "8080"},
		{Host: "alias.test", Path: "/given", Type: "Prefix", Ingress: "default/app", Service: "default/api", Port: "8080"},
	} {
		if !slices.Contains(st.Routes, want) {
			t.Errorf("no route %+v", want)
		}
	}
	const want = "path app.test/gone: Service default/gone does not exist"
	if !slices.ContainsFunc(st.Problems, func(p snapshot.Problem) bool { return strings.Contains(p.Message, want) }) {
		t.Errorf("%v: nobody is told %q", st.Problems, want)
	}
}

// TestPassagesOutside: what is outside of the cluster is asked as a Service of type ExternalName
// is, never where nobody may be sent, and not at all where such Services are not.
func TestPassagesOutside(t *testing.T) {
	server := dns.Start(t)
	server.Set("good.test.", 1, "127.0.0.1")
	server.Set("metadata.test.", 1, "169.254.169.254")
	one := netip.MustParseAddrPort(listenerOf(t, "one"))
	ing := annotated("app", "app.test", map[string]string{"server-snippet": fmt.Sprintf(`
location /good { proxy_pass http://Good.Test:%[1]d/serve?of=app.test; }
location /literal { proxy_pass http://127.0.0.1:%[1]d; proxy_set_header Host $host; }
location /six { proxy_pass http://[::ffff:127.0.0.1]:%[1]d; }
location /metadata { proxy_pass http://metadata.test; }
location /address { proxy_pass http://169.254.169.254/latest/; }
location /itself { proxy_pass http://a.localhost; }
location /odd { proxy_pass http://a..b; }
location /gone { proxy_pass https://gone.test; }
location /other { proxy_pass http://web.other.svc; }
location /api { proxy_pass https://kubernetes.default.svc; }`, one.Port())})
	ing.Namespace = "shop"
	for _, barred := range []bool{false, true} {
		files, p := start(t, func(o *proxy.Options) {
			o.DialDNS, o.Routes.NoExternalName = server.Dial, barred
		})
		addr := bound(p, false)
		others, ends := service("web", corev1.ServicePort{Port: 80}), slice("web", "", one.String())
		others.Namespace, ends.Namespace = "other", "other"
		web, pods := service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web"))
		web.Namespace, pods.Namespace = "shop", "shop"
		files.Put(web, pods, others, ends, service("kubernetes", corev1.ServicePort{Port: 443}), slice("kubernetes", "", "127.0.0.60:443"), ing)
		for path, want := range map[string]string{
			"/good/x?y":     "200|one GET /serve?of=app.test/x?y host=Good.Test:",
			"/literal/x":    "200|one GET /literal/x host=app.test",
			"/six/x":        "200|one GET /six/x host=[::ffff:127.0.0.1]:",
			"/metadata/x":   "503|metadata.test leads to addresses only that are refused",
			"/address/x":    "503|169.254.169.254 is outside of the cluster, and 169.254.169.254: link-local",
			"/itself/x":     "503|it is the proxy itself",
			"/odd/x":        "503|is not a DNS name",
			"/gone/x":       "503|gone.test is outside of the cluster and",
			"/other/x":      "200|one GET /other/x host=web.other.svc",
			"/api/x":        "503|it is the API server's",
			"/nobody/else/": "200|web GET /nobody/else/",
		} {
			if barred && path != "/nobody/else/" && path != "/odd/x" && path != "/itself/x" {
				want = "503|--disable-svc-external-name refuses that"
			}
			code, part, _ := strings.Cut(want, "|")
			eventually(t, path+" is "+want, func() bool {
				status, said := ask(t, addr, "app.test", path)
				return strconv.Itoa(status) == code && (strings.Contains(said, part) || barred && status == 503)
			})
		}
		st, _ := p.State().(proxy.State)
		if has := slices.ContainsFunc(st.Backends, func(b proxy.BackendState) bool { return b.Service == "shop/good.test" }); has == barred {
			t.Errorf("%+v", st.Backends)
		}
	}
}

// TestDetours: an if that has another asked changes nothing else that the Ingress says, and closes
// nothing but itself where nobody is there.
func TestDetours(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	others, ends := service("web-http", corev1.ServicePort{Name: "web", Port: 80}), slice("web-http", "web", listenerOf(t, "others"))
	others.Namespace, ends.Namespace = "other", "other"
	files.Put(others, ends, service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")),
		service("beta", corev1.ServicePort{Port: 8080}), slice("beta", "", listenerOf(t, "beta")),
		sameUsersSecret(),
		annotated("guarded", "guarded.test", map[string]string{"auth-type": "basic", "auth-secret": "users", "configuration-snippet": "if ($arg_beta) { proxy_pass http://beta.default.svc:8080; }"}),
		annotated("app", "app.test", map[string]string{"server-alias": "alias.test", "request-headers": "X-Own: of app", "affinity": "cookie", "configuration-snippet": `
if ($arg_beta) { proxy_pass http://beta.default.svc:8080; }
if ($arg_gone) { proxy_pass http://gone.default.svc; }
if ($arg_api) { proxy_pass https://kubernetes.default.svc; }
if ($arg_out) { proxy_pass http://169.254.169.254; }
if ($arg_named) { set $proxy_upstream_name "default-beta-8080"; }
if ($arg_named ~ 2) { add_header X-Two two; }
if ($arg_nobody) { set $proxy_upstream_name "default-nobody-80"; }
if ($arg_other) { set $proxy_upstream_name "other-web-http-web"; }`}))
	files.Put(annotated("aliased", "aliased.test", map[string]string{"server-alias": "other-name.test", "configuration-snippet": "if ($arg_gone) { proxy_pass http://gone.default.svc; }",
		"server-snippet": "set $seen $arg_a; location /in { rewrite ^/in/out /x last; if ($arg_beta) { proxy_pass http://beta.default.svc:8080; } proxy_pass http://web.default.svc; } add_header X-Seen $seen;"}),
		annotated("canary", "aliased.test", map[string]string{"canary": "true", "canary-by-header": "X-Canary", "service": "canary"}),
		service("canary", corev1.ServicePort{Port: 80}), slice("canary", "", listenerOf(t, "canary")))
	eventually(t, "the routes are served", func() bool {
		got, _ := ask(t, addr, "alias.test", "/x?beta=1")
		_, said := ask(t, addr, "aliased.test", "/x\nX-Canary: always")
		return got == 200 && strings.Contains(said, "canary GET /x")
	})
	unlikeOthers := func(host string, _ int, said string) bool {
		return host == "app.test" && strings.Contains(said, "beta GET") && (!strings.Contains(said, `X-Own="of app"`) || strings.Contains(said, "INGRESSCOOKIE"))
	}
	expectAnswers(t, addr, unlikeOthers, map[string]string{
		"app.test /x":                                "200|web GET /x",
		"app.test /x?beta=1":                         "200|beta GET /x?beta=1 host=app.test",
		"alias.test /x?beta=1":                       "200|beta GET /x?beta=1 host=alias.test",
		"app.test /x?gone=1":                         "503|leads nowhere",
		"app.test /x?beta=1&gone=1":                  "503|leads nowhere",
		"app.test /x?out=1":                          "503|leads nowhere",
		"app.test /x?named=1":                        "200|beta GET /x?named=1 host=app.test",
		"app.test /x?named=2":                        "200|beta GET /x?named=2 host=app.test",
		"app.test /x?beta=1&other=1":                 "200|others GET /x", // the location that the last if belongs to asks whom the variable names
		"app.test /x?other=1":                        "200|others GET /x?other=1",
		"app.test /x?nobody=1":                       "503|leads nowhere",
		"aliased.test /in/x?beta=1":                  "200|beta GET /in/x?beta=1 ",
		"aliased.test /in/x":                         "200|web GET /in/x ",
		"aliased.test /in/x\nX-Canary: always":       "200|web GET /in/x ",
		"aliased.test /in/out?a=b\nX-Canary: always": "200|X-Seen: b",
		"other-name.test /in/x?beta=1":               "200|beta GET /in/x?beta=1 ",
		"other-name.test /x?gone=1":                  "503|leads nowhere",
		"guarded.test /x?beta=1":                     "401|",
	})
	for _, want := range []string{"in its snippets another backend is named: Service default/gone does not exist", "no Service is default-nobody-80, its namespace, name and port", "169.254.169.254 is outside of the cluster, and 169.254.169.254: link-local"} {
		if !slices.ContainsFunc(p.Problems(), func(p snapshot.Problem) bool { return strings.Contains(p.Message, want) }) {
			t.Errorf("%v: nobody is told %q", p.Problems(), want)
		}
	}
}

// TestPassagesComeAndGo: a change of the snippet, of its Service and of endpoints is there for
// the next request, and what nobody needs any more is given back.
func TestPassagesComeAndGo(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	app := func(location string) *networkingv1.Ingress {
		return annotated("app", "app.test", map[string]string{"server-snippet": location})
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")),
		app("location /api { proxy_pass http://api.default.svc; }"))
	answers := func(what string, status int, part string) {
		t.Helper()
		eventually(t, what, func() bool {
			got, said := ask(t, addr, "app.test", "/api/x")
			return got == status && strings.Contains(said, part)
		})
	}
	answers("there is no Service", 503, "")
	files.Put(service("api", corev1.ServicePort{Port: 80}), slice("api", "", listenerOf(t, "one")))
	answers("there is a Service", 200, "one GET /api/x")
	files.Put(slice("api", "", listenerOf(t, "two")))
	answers("it has another endpoint", 200, "two GET /api/x")
	files.Put(app("location /api { proxy_pass http://api.default.svc/v2; }"))
	answers("it is asked for another path", 200, "two GET /v2/x")
	files.Put(app("location /api { proxy_pass http://api.default.svc/v2; root /tmp; }"))
	answers("a snippet that is not understood closes nothing that it would not guard", 200, "web GET /api/x")
	eventually(t, "its backend is given back", func() bool {
		st, _ := p.State().(proxy.State)
		return !slices.ContainsFunc(st.Backends, func(b proxy.BackendState) bool { return b.Service == "default/api" })
	})
}

// expectAnswers asks "HOST REQUEST" each, and expects "STATUS|PART" of what is said, of which
// nothing is wrong.
func expectAnswers(t *testing.T, addr string, wrong func(host string, status int, said string) bool, wants map[string]string) {
	t.Helper()
	for request, want := range wants {
		host, request, _ := strings.Cut(request, " ")
		status, said := ask(t, addr, host, request)
		code, part, _ := strings.Cut(want, "|")
		if strconv.Itoa(status) != code || !strings.Contains(said, part) || wrong(host, status, said) {
			t.Errorf("%s %q: %d %s, want %s", host, request, status, said, want)
		}
	}
}
