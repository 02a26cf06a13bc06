package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestPassages: a location with proxy_pass is a route of its own. What the Ingress says of its
// paths does not hold there, what it and others say of the host does, and whose Service is not
// there, or not of the namespace, it is closed.
func TestPassages(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(
		service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")),
		service("api", corev1.ServicePort{Port: 8080}), slice("api", "", listenerOf(t, "api")),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"}, Data: map[string][]byte{"auth": []byte(sameUsers)}},
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
	for request, want := range map[string]string{
		"app.test /x":                         "401|",
		"app.test /api/x?y":                   `200|api GET /v1/x?y host=api.default.svc.cluster.local:8080`,
		"alias.test /api/x":                   "200|api GET /v1/x",
		"second.test /api/x":                  "200|api GET /v1/x",
		"app.test /api":                       "301|Location: /api/",
		"app.test /given/x":                   "200|api GET /given/x host=inner.test",
		"app.test /api/secret/x":              "403|",
		"app.test /gone":                      "503|",
		"app.test /gone/x":                    "401|",
		"app.test /others":                    "503|",
		"app.test POST /api/x\n\nbody":        "413|",
		"named.test /status/404?a":            "404|api GET /status/404?a",
		"named.test DELETE /status/404":       "404|api DELETE /status/404",
		"named.test POST /status/404\n\nbody": "404|web POST /status/404", // the body is not there any more
		"secure.test /x":                      "308|Location: https://secure.test/x",
		"secure.test /api/x":                  "302|Location: /api/login?to=/v1/x",
		"secure.test /kept":                   "302|Location: http://mover.default.svc/v1/login",
		"secure.test /told":                   "302|Location: /v2/login",
		"secure.test /same":                   "302|Location: /v1/login",
	} {
		host, request, _ := strings.Cut(request, " ")
		status, said := ask(t, addr, host, request)
		code, part, _ := strings.Cut(want, "|")
		if strconv.Itoa(status) != code || !strings.Contains(said, part) || status < 400 && strings.Contains(said, "of app") {
			t.Errorf("%s %q: %d %s, want %s", host, request, status, said, want)
		}
	}
	st, _ := p.State().(proxy.State)
	for _, want := range []proxy.RouteState{
		{Host: "app.test", Path: "/api/", Type: "Prefix", Ingress: "default/app", Service: "default/api", Port: "8080"},
		{Host: "alias.test", Path: "/given", Type: "Prefix", Ingress: "default/app", Service: "default/api", Port: "8080"},
	} {
		if !slices.Contains(st.Routes, want) {
			t.Errorf("no route %+v", want)
		}
	}
	for _, want := range []string{"path app.test/gone: Service default/gone does not exist", "path app.test/others: Service other/api is of another namespace"} {
		if !slices.ContainsFunc(st.Problems, func(p snapshot.Problem) bool { return strings.Contains(p.Message, want) }) {
			t.Errorf("%v: nobody is told %q", st.Problems, want)
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
