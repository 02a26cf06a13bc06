package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// answering answers with the status that the query asks for, and with fields that
// proxies rewrite.
func answering(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://inner.test:8080/app/login")
		w.Header().Set("Refresh", "5; url=http://inner.test:8080/app/")
		w.Header().Add("Set-Cookie", "a=b; Path=/app/x; Domain=.inner.test; HttpOnly")
		w.Header().Add("Set-Cookie", "domain=c; path=/other; domain=else.test")
		if code, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
			w.WriteHeader(code)
		}
		fmt.Fprintf(w, "backend %s", r.RequestURI)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// errorPages says what it was told of the error.
func errorPages(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.Header.Get("X-Code"))
		if r.URL.Path == "/" {
			w.WriteHeader(code)
		}
		fmt.Fprintf(w, "page method=%s uri=%s", r.Method, r.RequestURI)
		for _, name := range []string{"X-Code", "X-Format", "X-Original-URI", "X-Namespace", "X-Ingress-Name", "X-Service-Name", "X-Service-Port"} {
			fmt.Fprintf(w, " %s=%s", name, r.Header.Get(name))
		}
		fmt.Fprintf(w, " id=%d host=%s", len(r.Header.Get("X-Request-ID")), r.Host)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func responseCases() []globalCase {
	pages := map[string]string{"default-backend": "pages", "custom-http-errors": "404,503"}
	with := func(key, value string) map[string]string { return map[string]string{key: value} }
	redirect := map[string]string{"proxy-redirect-from": "http://inner.test:8080/app", "proxy-redirect-to": "https://shop.test"}
	return []globalCase{
		{"direct-response", nil, with("direct-response", "200 ok"), "/", 200, "\r\nok", "backend"},
		{"direct-response", nil, with("direct-response", "200\nUser-agent: *\nDisallow: /\n"), "/", 200, "Content-Type: text/plain; charset=utf-8\r\n", "backend"},
		{"direct-response", nil, with("direct-response", "200\nUser-agent: *\nDisallow: /\n"), "/", 200, "\r\nUser-agent: *\nDisallow: /", "backend"},
		{"direct-response", nil, map[string]string{"direct-response": "503 down\tfor now", "service": "missing", "response-headers": "Retry-After: 60\nContent-Type: text/html"}, "/", 503, "Retry-After: 60\r\n", "missing"},
		{"direct-response", nil, with("direct-response", `200 {"path":"$uri","q":"$arg_q","cost":"$"}`), "/a?q=<b>", 200, "\r\n" + `{"path":"/a","q":"<b>","cost":"$"}`, "backend"},
		{"direct-response", nil, with("direct-response", "200 $arg_q"), "/a?q=<b>", 200, "X-Content-Type-Options: nosniff\r\n", "backend"},
		{"direct-response", nil, with("direct-response", "200 $arg_q"), "/", 200, "", "text/plain"},
		{"direct-response", nil, with("direct-response", "200 $nothing"), "/", 503, "variable $nothing is not known", "backend"},
		{"direct-response", nil, with("direct-response", "410"), "/", 410, "410\n", "backend"},
		{"direct-response", nil, with("direct-response", "204"), "/", 204, "", "Content-Type"},
		{"direct-response", nil, map[string]string{"direct-response": "200 ok", "denylist-source-range": "0.0.0.0/0,::/0"}, "/", 403, "", "ok\n"},
		{"direct-response", nil, with("direct-response", "301 https://new.test/"), "/", 503, "permanent-redirect", "backend"},
		{"direct-response", nil, with("direct-response", "ok"), "/", 503, "is not a status", "backend"},
		{"direct-response", nil, with("direct-response", "204 ok"), "/", 503, "has no text", "backend"},
		{"direct-response", nil, with("direct-response", "200 a\x00b"), "/", 503, "control characters", "backend"},
		{"proxy-redirect-from", nil, redirect, "/?status=302", 302, "Location: https://shop.test/login\r\n", ""},
		{"proxy-redirect-to", nil, redirect, "/", 200, "Refresh: 5; url=https://shop.test/\r\n", ""},
		{"proxy-redirect-from", nil, map[string]string{"proxy-redirect-from": "http://other.test", "proxy-redirect-to": "/"}, "/", 200, "Location: http://inner.test:8080/app/login\r\n", ""},
		{"proxy-redirect-from", nil, with("proxy-redirect-from", "http://inner.test:8080"), "/", 200, "Location: http://inner.test:8080/app/login\r\n", ""},
		{"proxy-redirect-to", nil, map[string]string{"proxy-redirect-from": "http://inner.test:8080", "proxy-redirect-to": "$scheme://$host"}, "/", 200, "Location: http://HOST/app/login", ""},
		{"proxy-redirect-to", nil, map[string]string{"proxy-redirect-from": "http://inner.test:8080", "proxy-redirect-to": "http://$nothing"}, "/", 200, "Location: http://inner.test", ""},
		{"proxy-redirect-from", nil, map[string]string{"proxy-redirect-from": "$scheme://inner.test:8080/$arg_at", "proxy-redirect-to": "/"}, "/?at=app", 200, "Location: /login", ""},
		{"proxy-redirect-from", nil, map[string]string{"proxy-redirect-from": "~^https?://inner\\.test:\\d+(/.*)$", "proxy-redirect-to": "https://shop.test$1"}, "/", 200, "Location: https://shop.test/app/login\r\nRefresh: 5; url=https://shop.test/app/\r\n", ""},
		{"proxy-redirect-from", nil, map[string]string{"proxy-redirect-from": "~(", "proxy-redirect-to": "/"}, "/", 200, "Location: http://inner.test:8080/app/login\r\n", ""},
		{"proxy-cookie-path", nil, with("proxy-cookie-path", "/app /$arg_p"), "/?p=x;%20Secure;", 200, "; Path=/x%20Secure/x;", "; Secure"},
		{"success-headers", nil, with("success-headers", "Cache-Control: max-age=60\nSet-Cookie:"), "/?status=204", 204, "Cache-Control: max-age=60\r\n", "Set-Cookie"},
		{"success-headers", nil, with("success-headers", "Cache-Control: max-age=60\nSet-Cookie:"), "/?status=404", 404, "Set-Cookie", "Cache-Control"},
		{"success-headers", nil, map[string]string{"success-headers": "X-A: $uri", "response-headers": "X-A: a"}, "/u?status=308", 308, "X-A: /u\r\n", "X-A: a"},
		{"success-headers", nil, map[string]string{"success-headers": "X-A: s", "response-headers": "X-A: a"}, "/?status=500", 500, "X-A: a\r\n", "X-A: s"},
		{"proxy-cookie-flags", nil, with("proxy-cookie-flags", "~ secure samesite=strict nohttponly"), "/", 200, "a=b; Path=/app/x; Domain=.inner.test; Secure; SameSite=Strict\r\n", "HttpOnly"},
		{"proxy-cookie-flags", nil, with("proxy-cookie-flags", "A secure\n~^dom samesite=lax\n~ samesite=none"), "/", 200, "domain=c; path=/other; domain=else.test; SameSite=Lax\r\n", "None"},
		{"proxy-cookie-flags", nil, with("proxy-cookie-flags", "a HTTPOnly"), "/", 200, "a=b; Path=/app/x; Domain=.inner.test; HttpOnly\r\n", "HttpOnly; HttpOnly"},
		{"proxy-cookie-flags", nil, with("proxy-cookie-flags", "a partitioned"), "/", 200, "backend", "partitioned"},
		{"proxy-cookie-flags", nil, map[string]string{"proxy-cookie-flags": "~ secure", "proxy-cookie-path": "/app /x"}, "/", 200, "a=b; Path=/x/x; Domain=.inner.test; HttpOnly; Secure\r\n", ""},
		{"proxy-cookie-domain", nil, with("proxy-cookie-domain", "INNER.test shop.test"), "/", 200, "a=b; Path=/app/x; Domain=.shop.test; HttpOnly\r\n", ""},
		{"proxy-cookie-domain", nil, with("proxy-cookie-domain", "c evil.test"), "/", 200, "domain=c; path=/other; domain=else.test\r\n", "evil"},
		{"proxy-cookie-path", nil, with("proxy-cookie-path", "/app /"), "/", 200, "a=b; Path=//x; Domain=.inner.test; HttpOnly\r\n", ""},
		{"proxy-cookie-path", nil, with("proxy-cookie-path", "/ \"/; Secure; SameSite=strict\"\n"), "/", 200, "; Path=/app/x; Secure; SameSite=strict;", ""},
		{"proxy-cookie-path", nil, with("proxy-cookie-path", "/app /x; Secure"), "/", 200, "Path=/app/x;", "Secure"},
		{"proxy-cookie-path", nil, with("proxy-cookie-path", "off"), "/", 200, "Path=/app/x;", ""},
		{"default-backend", nil, map[string]string{"default-backend": "pages", "service": "empty"}, "POST /x?y\n\nbody", 200,
			"page method=POST uri=/x?y X-Code=503 X-Format= X-Original-URI=/x?y X-Namespace=default X-Ingress-Name=i X-Service-Name=empty X-Service-Port=80 id=32", ""},
		{"default-backend", nil, map[string]string{"default-backend": "pages", "service": "gone"}, "/x", 200,
			"page method=GET uri=/x X-Code=503 X-Format= X-Original-URI=/x X-Namespace=default X-Ingress-Name=i X-Service-Name=gone X-Service-Port=80 id=32", ""},
		{"default-backend", nil, map[string]string{"default-backend": "pages", "service": "gone", "denylist-source-range": "127.0.0.0/8"}, "/x", 403, "may not pass", "page"},
		{"default-backend", nil, map[string]string{"default-backend": "pages", "service": "gone", "auth-type": "digest"}, "/x", 503, "", "page"},
		{"default-backend", nil, map[string]string{"default-backend": "gone", "service": "empty"}, "/", 503, "has no endpoint", ""},
		{"default-backend", nil, with("default-backend", "pages"), "/?status=404", 404, "backend /", ""},
		{"custom-http-errors", nil, pages, "POST /x?status=404\nAccept: text/html\n\nbody", 404,
			"page method=GET uri=/?status=404 X-Code=404 X-Format=text/html X-Original-URI=/x?status=404 X-Namespace=default X-Ingress-Name=i X-Service-Name=web X-Service-Port=80 id=32", "Location"},
		{"custom-http-errors", nil, map[string]string{"default-backend": "pages", "custom-http-errors": "404", "rewrite-target": "/inner", "upstream-vhost": "inner.test"}, "/x?status=404", 404,
			"page method=GET uri=/?status=404 X-Code=404 X-Format= X-Original-URI=/x?status=404 X-Namespace=default X-Ingress-Name=i X-Service-Name=web X-Service-Port=80 id=32 host=HOST", ""},
		{"custom-http-errors", nil, pages, "HEAD /x?status=404", 404, "", "Location"},
		{"custom-http-errors", nil, pages, "/x?status=500", 500, "backend /x", ""},
		{"custom-http-errors", nil, with("custom-http-errors", "404"), "/x?status=404", 404, "backend /x", ""},
		{"custom-http-errors", nil, map[string]string{"default-backend": "empty", "custom-http-errors": "404"}, "/x?status=404", 503, "has no endpoint", "backend /x"},
		// What a guard refuses, nobody else answers (CVE-2026-24513).
		{"custom-http-errors", nil, map[string]string{"default-backend": "pages", "custom-http-errors": "403", "denylist-source-range": "127.0.0.0/8"}, "/", 403, "may not pass", "page"},
		{"disable-proxy-intercept-errors", nil, map[string]string{"default-backend": "pages", "custom-http-errors": "404", "disable-proxy-intercept-errors": "true"},
			"/x?status=404", 404, "backend /x", ""},
		{"service-upstream", nil, map[string]string{"service-upstream": "true", "service": "virtual"}, "/v", 200, "backend /v", ""},
		{"service-upstream", nil, with("service", "virtual"), "/v", 503, "has no endpoint", ""},
		{"service-upstream", nil, with("service-upstream", "true"), "/v", 503, "no address of its own", ""},
	}
}

// TestResponseOptions asks over HTTP for each option about what backends answer.
func TestResponseOptions(t *testing.T) {
	files, p := start(t, nil)
	web := answering(t)
	_, port, _ := strings.Cut(web, ":")
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	virtual := service("virtual", corev1.ServicePort{Name: "a", Port: 80}, corev1.ServicePort{Name: "b", Port: int32(number)})
	virtual.Spec.ClusterIP = "127.0.0.1"
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", web), service("empty", corev1.ServicePort{Port: 80}), virtual,
		service("pages", corev1.ServicePort{Port: 80}), slice("pages", "", errorPages(t)))
	addr := bound(p, false)
	for i, k := range responseCases() {
		t.Run(k.key, func(t *testing.T) {
			host := fmt.Sprintf("%s-%d.test", k.key, i)
			ing := annotated("i", host, k.with)
			if k.with["service"] == "virtual" {
				ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = int32(number)
			}
			files.Put(ing)
			eventually(t, fmt.Sprintf("%v answers %q with %d, %q and not %q", k.with, k.request, k.status, k.says, k.not), func() bool {
				status, said := ask(t, addr, host, k.request)
				return status == k.status && strings.Contains(said, strings.ReplaceAll(k.says, "HOST", host)) && (k.not == "" || !strings.Contains(said, k.not))
			})
		})
	}
}

// TestServerAlias: the alias has the routes of its Ingress until somebody has
// rules for that name.
func TestServerAlias(t *testing.T) {
	files, p := start(t, nil)
	other := ingress("other", "alias.test", "/", "other", number)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		service("other", corev1.ServicePort{Port: 80}), slice("other", "", echo(t, "other")),
		annotated("a", "main.test", map[string]string{"server-alias": "alias.test, *.alias.test"}),
		annotated("b", "second.test", map[string]string{"server-alias": "alias.test", "path": "/b", "service": "other"}))
	addr := bound(p, false)
	says := func(host, target, want string) {
		t.Helper()
		eventually(t, host+target+" is answered by "+want, func() bool { _, said := ask(t, addr, host, target); return strings.Contains(said, want) })
	}
	says("alias.test", "/x", "web uri=/x ")
	says("alias.test", "/b", "other uri=/b ")
	says("x.alias.test", "/x", "web uri=/x ")
	files.Put(other)
	says("alias.test", "/x", "other uri=/x ")
	state, _ := p.State().(proxy.State)
	told := 0
	for _, problem := range state.Problems {
		if problem.Reason == "AliasUnused" {
			told++
		}
	}
	if told != 2 {
		t.Errorf("%d are told of 2: %v", told, state.Problems)
	}
	files.Delete(snapshot.Ingress, snapshot.KeyOf(other))
	says("alias.test", "/x", "web uri=/x ")
}
