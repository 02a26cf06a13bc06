package proxy_test

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// optionCase is what one annotation, with those that it needs, does to a request.
type optionCase struct {
	key     string // names the test and the host
	with    map[string]string
	request string // [METHOD ]TARGET, then "NAME: VALUE" lines
	status  int
	says    string // in the body or in a field of the response
}

func optionCases() []optionCase {
	basic := map[string]string{"auth-type": "basic", "auth-secret": "users"}
	cors := map[string]string{"enable-cors": "true"}
	session := map[string]string{"affinity": "cookie"}
	with := func(base map[string]string, more ...string) map[string]string {
		all := maps.Clone(base)
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	only := func(pairs ...string) map[string]string { return with(map[string]string{}, pairs...) }
	const ann, wrong = "\nAuthorization: Basic YW5uOnRlc3Q=", "\nAuthorization: Basic YW5uOndyb25n"
	return []optionCase{
		{"whitelist-source-range", only("whitelist-source-range", "10.0.0.0/8"), "/\nX-Forwarded-For: 10.1.1.1", 200, "uri=/ "},
		{"whitelist-source-range", only("whitelist-source-range", "10.0.0.0/8"), "/\nX-Forwarded-For: 11.1.1.1", 403, ""},
		{"whitelist-source-range", only("whitelist-source-range", "10.0.0.0/8,"), "POST /", 403, ""},
		{"allowlist-source-range", only("allowlist-source-range", "10.0.0.0/33"), "/\nX-Forwarded-For: 10.1.1.1", 503, "not understood"},
		{"denylist-source-range", only("denylist-source-range", "10.0.0.0/8"), "/\nX-Forwarded-For: 10.1.1.1", 403, ""},
		{"denylist-source-range", only("denylist-source-range", "10.0.0.0/8"), "/", 200, ""},
		{"whitelist-source-range", only("whitelist-source-range", ""), "/", 503, "lists nothing"}, // as in ingress-nginx
		{"denylist-source-range", only("denylist-source-range", " "), "/", 503, "lists nothing"},
		{"denied-paths", only("denied-paths", "/admin"), "/administrator?x", 403, "403 Forbidden\n"},
		{"denied-paths", only("denied-paths", "/admin"), "/Admin", 200, "uri=/Admin "},
		{"denied-paths", only("denied-paths", "/x\n= /admin 404\n"), "/admin", 404, "404 Not Found\n"},
		{"denied-paths", only("denied-paths", "= /admin"), "/admin/", 200, "uri=/admin/ "},
		{"denied-paths", only("denied-paths", `~ /\.git`), "/a/.git/config", 403, ""},
		{"denied-paths", only("denied-paths", `~* ^/wp-.*\.php$ 410`), "POST /WP-login.PHP", 410, "410 Gone\n"},
		{"denied-paths", only("denied-paths", "/admin/x"), "/admin%2Fx", 403, ""},
		{"server-snippet", only("server-snippet", "location /admin { deny all; }\nlocation ~ /\\.git { return 404; }"), "/admin/x", 403, "403 Forbidden\n"},
		{"server-snippet", only("server-snippet", "location /admin { deny all; }\nlocation ~ /\\.git { return 404; }"), "/a/.git/config", 404, "404 Not Found\n"},
		{"server-snippet", only("server-snippet", "location /admin { deny all; }"), "/x", 200, "uri=/x "},
		{"server-snippet", only("server-snippet", "more_set_headers 'X-Own: a'; if ($http_x_forwarded_proto = http) { return 301 https://$host$request_uri; }"), "/x", 200, "X-Own: a\r\n"},
		{"server-snippet", only("server-snippet", "more_set_headers 'X-Own: a'; if ($http_x_forwarded_proto = http) { return 301 https://$host$request_uri; }"), "/x\nX-Forwarded-Proto: http", 301, "Location: https://server-snippet-"},
		{"denied-paths", only("denied-paths", "/admin/x"), "/admin;v=1/x", 403, ""},
		{"denied-paths", only("denied-paths", "/admin"), "//%2fadmin", 403, ""},
		{"denied-paths", only("denied-paths", "/a 401"), "/", 200, ""},
		{"denied-paths", only("denied-paths", "/a 500"), "/", 503, "none of the statuses 400, 401, 403, "},
		{"denied-requests", only("denied-requests", "$request_method !~ ^(GET|HEAD)$ 405"), "POST /", 405, "405 Method Not Allowed\n"},
		{"denied-requests", only("denied-requests", "$request_method !~ ^(GET|HEAD)$ 405"), "/", 200, "uri=/ "},
		{"denied-requests", only("denied-requests", `$http_user_agent ~* "bad bot|spider"`), "/\nUser-Agent: A Bad Bot/2", 403, "403 Forbidden\n"},
		{"denied-requests", only("denied-requests", `$http_user_agent ~ "bad bot"`), "/\nUser-Agent: A Bad Bot/2", 200, ""},
		{"denied-requests", only("denied-requests", `$http_x_from = ""`), "/", 403, ""},
		{"denied-requests", only("denied-requests", "$http_x_key != secret 401"), "/", 401, "401 Unauthorized\n"},
		{"denied-requests", only("denied-requests", "$http_x_key != secret 401"), "/\nX-Key: secret", 200, ""},
		{"denied-requests", only("denied-requests", "$http_x_key != secret 401"), "/\nX-Key: secret\nX-Key: other", 401, ""},
		{"denied-requests", only("denied-requests", "$arg_debug ~ ."), "/?a=b&debug=&debug=1", 403, ""},
		{"denied-requests", only("denied-requests", "$cookie_old = 1 410\n$arg_a = b 404"), "/?a=b\nCookie: new=1; old=1", 410, "410 Gone\n"},
		{"denied-requests", only("denied-requests", "$uri = /x"), "/", 503, "denied-paths is about paths"},
		{"satisfy", with(basic, "satisfy", "any", "allowlist-source-range", "10.0.0.0/8"), "/\nX-Forwarded-For: 10.1.1.1", 200, ""},
		{"satisfy", with(basic, "satisfy", "any", "allowlist-source-range", "10.0.0.0/8"), "/" + ann, 200, ""},
		{"satisfy", with(basic, "satisfy", "any", "allowlist-source-range", "10.0.0.0/8"), "/", 401, ""},
		{"auth-type", basic, "/", 401, ""},
		{"auth-type", with(basic, "auth-type", "digest"), "/" + ann, 503, "only basic is supported"},
		{"auth-secret", basic, "/" + ann, 200, ""},
		{"auth-secret", basic, "/" + wrong, 401, ""},
		{"auth-secret", with(basic, "auth-secret", "missing"), "/" + ann, 503, "does not exist"},
		{"auth-secret", with(basic, "auth-secret", "kube-system/users"), "/" + ann, 503, "another namespace"},
		{"auth-secret-type", with(basic, "auth-secret", "map", "auth-secret-type", "auth-map"), "/" + ann, 200, ""},
		{"auth-realm", with(basic, "auth-realm", `Staff "only"`), "/", 401, `realm="Staff \"only\""`},
		{"rewrite-target", only("rewrite-target", "/$1", "use-regex", "true", "path", "/api/(.*)"), "/api/a%20b?x=1", 200, "uri=/a%20b?x=1 "},
		{"rewrite-target", only("rewrite-target", "/$1", "use-regex", "true", "path", "/api/(.*)"), "/other", 404, ""},
		{"use-regex", only("use-regex", "true", "path", "/[a-c]+/x"), "/AbC/x", 200, "uri=/AbC/x "},
		{"use-regex", only("use-regex", "true", "path", `/(?=a)`), "/a", 503, "only RE2 is understood"},
		{"app-root", only("app-root", "/app"), "/", 302, "/app"},
		{"app-root", only("app-root", "/app"), "/x", 200, ""},
		{"app-root", only("app-root", "/app"), "/?a=b", 302, ".test/app\r\n"},
		{"app-root", only("app-root", "/app?a=b"), "/", 302, ".test/app?a=b\r\n"},
		{"app-root", only("app-root", "/$nothing"), "/", 200, "uri=/ "},
		{"app-root", only("app-root", "/to/$host"), "/", 302, "/to/app-root-"},
		{"use-regex", only("use-regex", "true", "path", "/[a-c]+/x", "permanent-redirect", "https://new.example/y"), "/b/x", 301, "https://new.example/y\r\n"},
		{"use-regex", only("use-regex", "true", "path", "/[a-c]+/x", "force-ssl-redirect", "true"), "/b/x?y", 308, ".test/b/x?y\r\n"},
		{"use-regex", only("use-regex", "true", "path", "/[a-c]+/x", "force-ssl-redirect", "true"), "/d/x", 404, ""},
		{"rewrite-target", only("rewrite-target", ""), "/x", 200, "uri=/x "},
		{"rewrite-target", only("rewrite-target", "/$nothing"), "/x", 503, "not understood: variable $nothing is not known"},
		{"rewrite-target", only("rewrite-target", "/new", "path", "/plain", "use-regex", "true"), "/plain", 200, "uri=/new "},
		{"rewrite-target", only("rewrite-target", "https://new.example/$1", "path", "/(.*)", "use-regex", "true", "service", "never-made"), "/a?b", 302, "https://new.example/a?b\r\n"},
		{"permanent-redirect", only("permanent-redirect", "https://new.example", "service", "never-made"), "/x", 301, "https://new.example"},
		{"permanent-redirect", only("permanent-redirect", "https://new.example"), "/x", 301, "https://new.example"},
		{"permanent-redirect", only("permanent-redirect", "https://new.example/#$arg_a"), "/x?a=%23", 301, "https://new.example/#%23\r\n"},
		{"permanent-redirect", only("permanent-redirect", "/$arg_to"), "/x?to=//evil.test", 301, "Location: /evil.test\r\n"},
		{"permanent-redirect", only("permanent-redirect", "https://$arg_to/"), "/x?to=evil.test", 503, "may not decide which host"},
		{"permanent-redirect", only("permanent-redirect", "https://$1.test/", "use-regex", "true", "path", "/(.*)"), "/evil", 503, "$1 may not decide which host"},
		{"permanent-redirect-code", only("permanent-redirect", "https://new.example", "permanent-redirect-code", "308"), "/", 308, ""},
		{"redirected-requests", only("redirected-requests", "$uri ~ ^(/docs)$ $1/$is_args$args"), "/docs?a=b", 302, "Location: /docs/?a=b\r\n"},
		{"redirected-requests", only("redirected-requests", "$uri ~ ^(/docs)$ $1/$is_args$args"), "/docs/", 200, "uri=/docs/ "},
		{"redirected-requests", only("redirected-requests", "$http_x_forwarded_proto = http https://$host$request_uri 308"), "/x?y\nX-Forwarded-Proto: http", 308, "Location: https://redirected-requests-"},
		{"redirected-requests", only("redirected-requests", "$http_x_forwarded_proto = http https://$host$request_uri 308"), "/x?y\nX-Forwarded-Proto: https", 200, "uri=/x?y "},
		{"redirected-requests", only("redirected-requests", "$uri ~ /(.*)$ /in/$1", "auth-type", "basic", "auth-secret", "users"), "//evil.test", 302, "Location: /in/evil.test\r\n"},
		{"redirected-requests", only("redirected-requests", "$arg_to ~ (.*) $1"), "/?to=//evil.test/%0d%0aX:%20y", 302, "Location: /evil.test/%0d%0aX:%20y\r\n"},
		{"redirected-requests", only("redirected-requests", "$arg_to ~ (.+) https://$1/"), "/?to=evil.test", 503, "$1 may not decide which host"},
		{"redirected-requests", only("redirected-requests", "$host ~ ^redirected-(.*) https://$1$request_uri 301"), "/x?y", 301, "Location: https://requests-"},
		{"redirected-requests", only("redirected-requests", "$uri = /docs $uri/"), "/docs", 302, "Location: /docs/\r\n"},
		{"redirected-requests", only("redirected-requests", "$uri = /docs $http_x"), "/docs\nX: //evil.test", 302, "Location: /evil.test\r\n"},
		{"redirected-requests", only("redirected-requests", "$request_method = GET"), "/", 503, "it does not say where to"},
		{"answered-requests", only("answered-requests", "$uri = /robots.txt 200 User-agent: *\\nDisallow: /"), "/robots.txt", 200, "User-agent: *\nDisallow: /"},
		{"answered-requests", only("answered-requests", "$uri = /robots.txt 200 User-agent: *\\nDisallow: /"), "/robots.txt/x", 200, "uri=/robots.txt/x "},
		{"answered-requests", only("answered-requests", `$uri = /info 200 application/json "{"path":"C:\\x","host":"$host"}"`), "/info", 200, `{"path":"C:\x","host":"answered-requests-`},
		{"answered-requests", only("answered-requests", `$uri = /info 200 application/json "{}"`), "/info", 200, "Content-Type: application/json\r\n"},
		{"answered-requests", only("answered-requests", "$request_method = OPTIONS 204", "auth-type", "basic", "auth-secret", "users"), "OPTIONS /x", 204, ""},
		{"answered-requests", only("answered-requests", "$request_method = OPTIONS 204", "auth-type", "basic", "auth-secret", "users"), "/x", 401, ""},
		{"answered-requests", only("answered-requests", `$uri = / 200 text/html "<b>$arg_a</b>"`), "/", 503, "nobody's words become a page"},
		{"answered-requests", only("answered-requests", `$uri = / 200 text/html/x "x"`), "/", 503, "no media type"},
		{"answered-requests", only("answered-requests", "$uri = / 301 https://new.test"), "/", 503, "sends clients elsewhere"},
		{"answered-requests", only("answered-requests", "$uri ~ ^/hello/(.*)$ 200 Hello, $1!"), "/hello/you", 200, "Hello, you!"},
		{"answered-requests", only("answered-requests", "$uri = / 404"), "/", 503, "denied-paths and denied-requests do"},
		{"answered-requests", only("answered-requests", `$uri = / 200 "x`), "/", 503, "does not end with the double quotes"},
		{"rewritten-paths", only("rewritten-paths", "^/kibana(/|$)(.*) /$2\n^/a/(.*)$ /b/$1?c=d"), "/kibana/app?q=1", 200, "uri=/app?q=1 "},
		{"rewritten-paths", only("rewritten-paths", "^/kibana(/|$)(.*) /$2\n^/a/(.*)$ /b/$1?c=d"), "/a/x%2Fy?q=1", 200, "uri=/b/x/y?c=d&q=1 "},
		{"rewritten-paths", only("rewritten-paths", "^/kibana(/|$)(.*) /$2\n^/a/(.*)$ /b/$1?c=d"), "/b/a/x", 200, "uri=/b/a/x "},
		{"rewritten-paths", only("rewritten-paths", "^/a$ /b", "rewrite-target", "/c"), "/a", 200, "uri=/b "},
		{"rewritten-paths", only("rewritten-paths", "^/a$ /b", "rewrite-target", "/c"), "/x", 200, "uri=/c "},
		{"rewritten-paths", only("rewritten-paths", "^/(.*)/(.*)$ /$2/$1"), "/a%2F../b", 400, ""},
		{"rewritten-paths", only("rewritten-paths", "^/a https://new.test/"), "/", 503, "redirected-requests sends requests elsewhere"},
		{"temporal-redirect", only("temporal-redirect", "https://new.example", "permanent-redirect", "https://old.example"), "/", 302, "https://new.example"},
		{"temporal-redirect-code", only("temporal-redirect", "https://new.example", "temporal-redirect-code", "307"), "/", 307, ""},
		{"ssl-redirect", only("ssl-redirect", "true", "tls", "yes"), "/x", 308, "https://"},
		{"force-ssl-redirect", only("force-ssl-redirect", "true"), "/x?y", 308, "/x?y"},
		{"force-ssl-redirect", only("force-ssl-redirect", "true"), "/x\nX-Forwarded-Proto: https", 200, ""},
		{"enable-cors", cors, "OPTIONS /", 204, "PUT, POST"},
		{"enable-cors", cors, "OPTIONS /\nOrigin: https://x", 204, "Access-Control-Allow-Headers: DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization\r\n"},
		{"cors-allow-origin", with(cors, "cors-allow-origin", "https://*.a.test"), "/\nOrigin: https://x.a.test", 200, "https://x.a.test"},
		{"cors-allow-methods", with(cors, "cors-allow-methods", "GET, BREW"), "/", 200, "GET, BREW"},
		{"cors-allow-headers", with(cors, "cors-allow-headers", "X-Tea"), "/", 200, "X-Tea"},
		{"cors-expose-headers", with(cors, "cors-expose-headers", "X-Pot"), "/", 200, "X-Pot"},
		{"cors-max-age", with(cors, "cors-max-age", "77"), "/", 200, "77"},
		{"cors-max-age", with(cors, "cors-max-age", "0"), "/", 200, "Access-Control-Max-Age: 0\r\n"},
		{"cors-max-age", with(cors, "cors-max-age", "-1"), "/", 200, "Access-Control-Max-Age: -1\r\n"},
		{"cors-allow-credentials", with(cors, "cors-allow-credentials", "true"), "/", 200, "Access-Control-Allow-Credentials: true"},
		{"proxy-body-size", only("proxy-body-size", "1k"), "POST /\n\n" + strings.Repeat("x", 1025), 413, ""},
		{"proxy-body-size", only("proxy-body-size", "1k"), "POST /\n\n" + strings.Repeat("x", 1024), 200, ""},
		{"upstream-vhost", only("upstream-vhost", "inner.test"), "/", 200, "host=inner.test "},
		{"upstream-vhost", only("upstream-vhost", "$host"), "/", 200, "host=upstream-vhost-"},
		{"upstream-vhost", only("upstream-vhost", "$service_name.$namespace.svc"), "/", 200, "host=web.default.svc "},
		{"upstream-vhost", only("upstream-vhost", "$1.test", "use-regex", "true", "path", "/([^/]+)"), "/a@b", 400, "cannot be made a host"},
		{"upstream-vhost", only("upstream-vhost", "$http_x"), "/\nX: evil.test", 200, "host=upstream-vhost-"},
		{"x-forwarded-prefix", only("x-forwarded-prefix", "/before"), "/", 200, "prefix=/before "},
		{"affinity", session, "/", 200, "INGRESSCOOKIE="},
		{"session-cookie-name", with(session, "session-cookie-name", "route"), "/", 200, "route="},
		{"session-cookie-max-age", with(session, "session-cookie-max-age", "60"), "/", 200, "Max-Age=60"},
		{"session-cookie-samesite", with(session, "session-cookie-samesite", "Lax"), "/", 200, "SameSite=Lax"},
		{"session-cookie-path", with(session, "session-cookie-path", "/x"), "/", 200, "Path=/x"},
		{"session-cookie-path", with(session, "path", "/shop/"), "/shop/a", 200, "; Path=/shop; HttpOnly"},
		{"session-cookie-path", with(session, "path", "/shop/.*", "use-regex", "true"), "/shop/a", 200, "; Path=/; HttpOnly"},
		{"session-cookie-path", with(session, "path", "/a%20b"), "/a%20b", 200, "; Path=/; HttpOnly"},
		{"session-cookie-domain", with(session, "session-cookie-domain", "a.test"), "/", 200, "; Domain=a.test;"},
		{"session-cookie-domain", with(session, "session-cookie-domain", "*.a.test"), "/", 200, "; Path=/; HttpOnly"},
		{"session-cookie-expires", with(session, "session-cookie-expires", "60"), "/", 200, "; Expires="},
		{"session-cookie-secure", with(session, "session-cookie-secure", "true"), "/", 200, "; Secure"},
		{"session-cookie-conditional-samesite-none", with(session, "session-cookie-samesite", "None", "session-cookie-conditional-samesite-none", "true"),
			"/\nUser-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 12_4)", 200, "; HttpOnly\r\n"},
		{"session-cookie-conditional-samesite-none", with(session, "session-cookie-samesite", "None", "session-cookie-conditional-samesite-none", "true"), "/", 200, "; SameSite=None"},
		{"session-cookie-change-on-failure", with(session, "session-cookie-change-on-failure", "true"), "/", 200, "INGRESSCOOKIE="},
		{"affinity-mode", with(session, "affinity-mode", "persistent"), "/", 200, "INGRESSCOOKIE="},
		{"proxy-connect-timeout", only("proxy-connect-timeout", "1s; return 200"), "/", 200, "uri=/ "},
		{"proxy-ssl-server-name", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-server-name", "on", "proxy-ssl-name", "example.com"), "/", 200, "secure uri=/ "},
		{"proxy-read-timeout", only("proxy-read-timeout", "1"), "/?wait=yes", 504, "did not answer in time"},
		{"proxy-read-timeout", only("proxy-read-timeout", "soon"), "/", 200, ""},
		{"backend-protocol", only("backend-protocol", "https", "service", "secure"), "/", 200, "secure uri=/ "},
		{"backend-protocol", only("service", "secure"), "/", 400, ""},
		{"backend-protocol", only("backend-protocol", "FCGI"), "/", 503, "only HTTP, HTTPS, GRPC, GRPCS and H2C are"},
		{"proxy-ssl-verify", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-verify", "on"), "/", 502, "TLS handshake"},
		{"proxy-ssl-secret", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-verify", "on", "proxy-ssl-secret", "default/vouches",
			"proxy-ssl-name", "example.com"), "/", 200, "secure uri=/ "},
		{"proxy-ssl-name", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-verify", "on", "proxy-ssl-secret", "default/vouches",
			"proxy-ssl-name", "example.org"), "/", 502, "TLS handshake"},
		{"proxy-ssl-name", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-verify", "on", "proxy-ssl-secret", "default/vouches",
			"proxy-ssl-name", "$host"), "/", 502, "TLS handshake"},
		{"proxy-ssl-name", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-name", "$remote_addr"), "/", 503, "no DNS name"},
		{"proxy-ssl-protocols", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-protocols", "TLSv1 TLSv1.1"), "/", 502, "TLS handshake"},
		{"proxy-ssl-protocols", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-protocols", "TLSv1.2"), "/", 200, "secure uri=/ "},
		{"proxy-ssl-protocols", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-protocols", "SSLv3"), "/", 200, "secure uri=/ "},
		{"proxy-ssl-ciphers", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-protocols", "TLSv1.2", "proxy-ssl-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"), "/", 502, "TLS handshake"},
		{"proxy-ssl-ciphers", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-protocols", "TLSv1.2", "proxy-ssl-ciphers", "HIGH:!aNULL"), "/", 200, "secure uri=/ "},
		{"proxy-ssl-ciphers", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-ciphers", "x; return 200"), "/", 200, "secure uri=/ "},
		{"proxy-ssl-verify-depth", only("backend-protocol", "HTTPS", "service", "secure", "proxy-ssl-verify", "on", "proxy-ssl-secret", "default/vouches",
			"proxy-ssl-name", "example.com", "proxy-ssl-verify-depth", "0"), "/", 200, "secure uri=/ "},
		{"proxy-ssl-verify-depth", only("backend-protocol", "HTTPS", "proxy-ssl-verify-depth", "deep"), "/", 503, "not understood"},
		{"proxy-ssl-secret", only("backend-protocol", "HTTPS", "proxy-ssl-secret", "missing"), "/", 503, "does not exist"},
		{"proxy-next-upstream", only("proxy-next-upstream", "error http_502", "proxy-next-upstream-tries", "0", "proxy-next-upstream-timeout", "5"), "/", 200, ""},
		{"proxy-next-upstream", only("proxy-next-upstream", "whenever"), "/", 200, ""},
		{"upstream-hash-by", only("upstream-hash-by", "$request_uri"), "/", 200, ""},
		{"health-check-successes", only("health-check-path", "/", "health-check-successes", "0; x"), "/", 200, "uri=/ "},
		{"enable-opentelemetry", only("enable-opentelemetry", "true"), "/", 200, "trace=00-"},
		{"opentelemetry-trust-incoming-span", only("enable-opentelemetry", "true", "opentelemetry-trust-incoming-span", "false"),
			"/\nTraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", 200, "-01 "},
		{"use-port-in-redirects", only("use-port-in-redirects", "true", "force-ssl-redirect", "true"), "/x?y", 308, ".test:8443/x?y"},
		{"use-port-in-redirects", only("use-port-in-redirects", "true", "tls", "yes", "ssl-redirect", "true"), "/", 308, ".test:8443/"},
		{"use-port-in-redirects", only("use-port-in-redirects", "false", "force-ssl-redirect", "true"), "/x", 308, ".test/x"},
		{"use-port-in-redirects", only("use-port-in-redirects", "9443", "force-ssl-redirect", "true"), "/x", 308, ".test/x"},
		{"use-port-in-redirects", only("use-port-in-redirects", "true"), "/x", 200, "uri=/x "},
	}
}

func echo(t *testing.T, name string) string {
	s := httptest.NewServer(echoing(name))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// echoing says what it was asked; with ?wait it says nothing until it is left.
func echoing(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			<-r.Context().Done()
			return
		}
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s uri=%s host=%s prefix=%s original=%s trace=%s ", name, r.RequestURI, r.Host,
			r.Header.Get("X-Forwarded-Prefix"), r.Header.Get("X-Original-URI"), r.Header.Get("Traceparent"))
	})
}

// annotated is an Ingress with options. Of them, "path", "tls" and "service" are
// not annotations.
func annotated(name, host string, options map[string]string) *networkingv1.Ingress {
	path := options["path"]
	if path == "" {
		path = "/"
	}
	ing := ingress(name, host, path, cmp.Or(options["service"], "web"), number)
	if options["use-regex"] != "" {
		any := networkingv1.PathTypeImplementationSpecific
		ing.Spec.Rules[0].HTTP.Paths[0].PathType = &any
	}
	if options["tls"] != "" {
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}}}
	}
	ing.Annotations = map[string]string{}
	for key, value := range options {
		if key != "path" && key != "tls" && key != "service" {
			ing.Annotations["nginx.ingress.kubernetes.io/"+key] = value
		}
	}
	return ing
}

// TestOptions asks for each option over HTTP.
func TestOptions(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		trusting(o)
		o.HTTP2, o.H2C, o.RedirectPort = true, true, 8443
	})
	const hash = "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"}, Data: map[string][]byte{"auth": []byte("ann:" + hash + "\n")}}
	byKey := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "map"}, Data: map[string][]byte{"ann": []byte(hash)}}
	objects := []snapshot.Object{service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), users, byKey}
	secure := httptest.NewTLSServer(echoing("secure"))
	defer secure.Close()
	vouches := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vouches"}, Data: map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.TLS.Certificates[0].Certificate[0]})}}
	objects = append(objects, vouches, service("secure", corev1.ServicePort{Port: 80}), slice("secure", "", strings.TrimPrefix(secure.URL, "https://")))
	hosts := make([]string, len(optionCases()))
	for i, k := range optionCases() {
		hosts[i] = fmt.Sprintf("%s-%d.test", k.key, i)
		objects = append(objects, annotated(fmt.Sprint("i", i), hosts[i], k.with))
	}
	files.Put(append(objects, ingress("last", "last.test", "/", "web", number))...)
	addr := bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "last.test", "/"); return code == 200 })
	for i, k := range optionCases() {
		t.Run(k.key, func(t *testing.T) {
			for _, via := range []http.RoundTripper{http.DefaultTransport, unencryptedHTTP2(t)} {
				status, said := askVia(t, via, addr, hosts[i], k.request)
				if status != k.status || !strings.Contains(said, k.says) {
					t.Errorf("%v %q: %d %q, want %d with %q", k.with, k.request, status, said, k.status, k.says)
				}
			}
		})
	}
}

// ask sends a request and returns the status, and the fields and the body of the
// response as one text.
func ask(t *testing.T, addr, host, request string) (status int, said string) {
	t.Helper()
	return askVia(t, http.DefaultTransport, addr, host, request)
}

func askVia(t *testing.T, via http.RoundTripper, addr, host, request string) (status int, said string) {
	t.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	method, target, ok := strings.Cut(lines[0], " ")
	if !ok {
		method, target = "GET", lines[0]
	}
	req, err := http.NewRequest(method, "http://"+addr+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for _, line := range lines[1:] {
		if address, ok := strings.CutPrefix(line, "from "); ok { // an address of this machine
			via = from(t, address)
			continue
		}
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
		if name == "Host" { // a port
			req.Host = host + value
		}
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		if text, err = io.ReadAll(decoded(t, "gzip", bytes.NewReader(text))); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	resp.Header.Write(&all)
	return resp.StatusCode, all.String() + string(text)
}

// from returns what connects from an address.
func from(t *testing.T, address string) http.RoundTripper {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	via := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	t.Cleanup(via.CloseIdleConnections)
	return via
}

// TestLimitsOverHTTP: what needs more than one request.
func TestLimitsOverHTTP(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		service("new", corev1.ServicePort{Port: 80}), slice("new", "", echo(t, "new")),
		annotated("rps", "limit-rps.test", map[string]string{"limit-rps": "1", "limit-burst-multiplier": "2"}),
		annotated("exempt", "limit-allowlist.test", map[string]string{"limit-rpm": "1", "limit-burst-multiplier": "1", "limit-allowlist": "127.0.0.0/8"}),
		annotated("old", "limit-whitelist.test", map[string]string{"limit-rpm": "1", "limit-burst-multiplier": "1", "limit-whitelist": "127.0.0.0/8"}),
		annotated("rpm", "limit-rpm.test", map[string]string{"limit-rpm": "1", "limit-burst-multiplier": "1"}),
		annotated("burst", "limit-burst-multiplier.test", map[string]string{"limit-rpm": "1", "limit-burst-multiplier": "7"}))
	www := annotated("www", "apex.test", map[string]string{"from-to-www-redirect": "true"})
	files.Put(www)
	eventually(t, "the routes are served", func() bool { code, _ := ask(t, addr, "www.apex.test", "/"); return code == 308 })
	count := func(host, request string) map[int]int {
		codes := map[int]int{}
		for range 20 {
			code, _ := ask(t, addr, host, request)
			codes[code]++
		}
		return codes
	}
	for _, k := range []struct {
		key         string
		least, most int // of 20 requests at once
	}{
		{"limit-rps", 2, 19}, {"limit-rpm", 1, 2}, {"limit-burst-multiplier", 7, 8},
		{"limit-allowlist", 20, 20}, {"limit-whitelist", 20, 20},
	} {
		t.Run(k.key, func(t *testing.T) {
			if codes := count(k.key+".test", "/"); codes[200] < k.least || codes[200] > k.most || codes[200]+codes[503] != 20 {
				t.Errorf("%v, want %d to %d that pass", codes, k.least, k.most)
			}
		})
	}
	t.Run("from-to-www-redirect", func(t *testing.T) {
		if status, said := ask(t, addr, "www.apex.test", "/x?y"); status != 308 || !strings.Contains(said, "http://apex.test/x?y") {
			t.Errorf("%d %s", status, said)
		}
	})
}

// TestCanariesOverHTTP: who gets to which of two Services of one host.
func TestCanariesOverHTTP(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		service("new", corev1.ServicePort{Port: 80}), slice("new", "", echo(t, "new")))
	add := func(host string, options map[string]string) {
		options["service"] = "new"
		files.Put(annotated("main-of-"+host, host, nil), annotated("canary-of-"+host, host, options))
	}
	add("off.test", map[string]string{"canary": "false", "canary-weight": "100"})
	add("total.test", map[string]string{"canary": "true", "canary-weight": "100", "canary-weight-total": "100000"})
	add("pattern.test", map[string]string{"canary": "true", "canary-by-header": "X-Canary", "canary-by-header-pattern": "^v[0-9]+$"})
	add("value.test", map[string]string{"canary": "true", "canary-by-header": "X-Canary", "canary-by-header-value": "you"})
	add("canary.test", map[string]string{"canary": "true", "canary-weight": "50", "canary-by-header": "X-Canary", "canary-by-cookie": "canary"})
	for _, host := range []string{"off.test", "total.test", "pattern.test", "value.test", "canary.test"} {
		routed(t, p, host)
	}
	got := func(t *testing.T, host, request string, n int) (anew int) {
		t.Helper()
		for range n {
			switch _, said := ask(t, addr, host, request); {
			case strings.Contains(said, "new uri"):
				anew++
			case !strings.Contains(said, "web uri"):
				t.Fatalf("%s%q: %s", host, request, said)
			}
		}
		return anew
	}
	for _, k := range []struct {
		key, host, request string
		n, least, most     int // requests, and how many of them the canary gets
	}{
		{"canary", "off.test", "/", 20, 0, 0},
		{"canary", "canary.test", "/", 200, 1, 199},
		{"canary-weight", "canary.test", "/", 200, 50, 150},
		{"canary-weight-total", "total.test", "/", 20, 0, 10}, // a thousandth
		{"canary-by-header-pattern", "pattern.test", "/\nX-Canary: v12", 10, 10, 10},
		{"canary-by-header-pattern", "pattern.test", "/\nX-Canary: always", 10, 0, 0},
		{"canary-by-header-pattern", "pattern.test", "/\nX-Canary: 12", 10, 0, 0},
		{"canary-by-header-value", "value.test", "/\nX-Canary: you", 10, 10, 10},
		{"canary-by-header-value", "value.test", "/\nX-Canary: always", 10, 0, 0},
		{"canary-by-header-value", "value.test", "/\nX-Canary: yours", 10, 0, 0},
		{"canary-by-header", "canary.test", "/\nX-Canary: always", 10, 10, 10},
		{"canary-by-header", "canary.test", "/\nX-Canary: never\nCookie: canary=always", 10, 0, 0}, // before the cookie
		{"canary-by-cookie", "canary.test", "/\nCookie: a=b; canary=always", 10, 10, 10},
		{"canary-by-cookie", "canary.test", "/\nCookie: canary=never", 10, 0, 0},
	} {
		t.Run(k.key, func(t *testing.T) {
			if n := got(t, k.host, k.request, k.n); n < k.least || n > k.most {
				t.Errorf("%s%q: the canary got %d of %d requests, want %d to %d", k.host, k.request, n, k.n, k.least, k.most)
			}
		})
	}
}
