package proxy_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// globalCase is what one option of the ConfigMap, with those that it needs, does to a
// request for a route of an adopted class.
type globalCase struct {
	key     string            // names the test
	data    map[string]string // of the ConfigMap
	with    map[string]string // annotations, and what annotated takes
	request string
	status  int
	says    string
	not     string // is not said
}

func globalCases() []globalCase {
	only := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	const secure = "/\nX-Forwarded-Proto: https"
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	const traced = "/\nTraceparent: " + trace + "01"
	const zipped = "/\nAccept-Encoding: gzip"
	sts := "Strict-Transport-Security: "
	big := "POST /\n\n" + strings.Repeat("x", 1<<20+1)
	return []globalCase{
		{"hsts", nil, only("tls", "yes"), secure, 200, sts + "max-age=31536000; includeSubDomains\r\n", ""},
		{"hsts", nil, only("tls", "yes", "ssl-redirect", "false"), "/", 200, "", sts},
		{"hsts", nil, nil, secure, 200, "", sts},
		{"hsts", only("hsts", "false"), only("tls", "yes"), secure, 200, "", sts},
		{"hsts", nil, only("tls", "yes"), "/?hsts\nX-Forwarded-Proto: https", 200, sts + "max-age=31536000; includeSubDomains\r\n", sts + "max-age=33"}, // in the backend's place
		{"hsts", nil, only("tls", "yes", "ssl-redirect", "false"), "/?hsts", 200, sts + "max-age=33", "31536000"},
		{"hsts", only("hsts", "false"), only("tls", "yes"), "/?hsts\nX-Forwarded-Proto: https", 200, sts + "max-age=33", "31536000"},
		{"response-headers", nil, map[string]string{"tls": "yes", "response-headers": "strict-transport-security: max-age=60"}, secure, 200, sts + "max-age=60\r\n", "31536000"},
		{"response-headers", nil, map[string]string{"tls": "yes", "response-headers": "Strict-Transport-Security:"}, secure, 200, "", sts},
		{"response-headers", nil, map[string]string{"tls": "yes", "ssl-redirect": "false", "response-headers": "Strict-Transport-Security: max-age=60"}, "/", 200, "", sts},
		{"hsts-max-age", only("hsts-max-age", "60"), only("tls", "yes"), secure, 200, sts + "max-age=60; includeSubDomains\r\n", ""},
		{"hsts-include-subdomains", only("hsts-include-subdomains", "false"), only("tls", "yes"), secure, 200, sts + "max-age=31536000\r\n", ""},
		{"hsts-preload", only("hsts-preload", "true"), only("tls", "yes"), secure, 200, "; preload\r\n", ""},
		{"ssl-redirect", only("ssl-redirect", "false"), only("tls", "yes"), "/", 200, "", ""},
		{"ssl-redirect", only("ssl-redirect", "false"), only("tls", "yes", "ssl-redirect", "true"), "/", 308, "https://", ""},
		{"ssl-redirect", nil, only("tls", "yes"), "/x?y\nHost: :8080", 308, ".test/x?y\r\n", ""},
		{"force-ssl-redirect", only("force-ssl-redirect", "true"), nil, "/", 308, "https://", ""},
		{"force-ssl-redirect", only("force-ssl-redirect", "true", "use-forwarded-headers", "true", "proxy-real-ip-cidr", "127.0.0.1"), nil,
			"/x\nX-Forwarded-Host: elsewhere.example:80, inside", 308, "https://elsewhere.example/x\r\n", ".test"},
		{"force-ssl-redirect", only("force-ssl-redirect", "true"), nil, "/x\nX-Forwarded-Host: elsewhere.example:80", 308, ".test/x\r\n", "elsewhere"},
		{"http-redirect-code", only("http-redirect-code", "301"), only("tls", "yes"), "/", 301, "https://", ""},
		{"no-tls-redirect-locations", nil, only("tls", "yes", "path", "/.well-known/acme-challenge/x"), "/.well-known/acme-challenge/x", 200, "", ""},
		{"no-tls-redirect-locations", nil, only("tls", "yes"), "/.well-known/acme-challenge/x", 308, "", ""}, // of which there is no rule
		{"no-tls-redirect-locations", only("no-tls-redirect-locations", "/plain, /too/"), only("tls", "yes", "path", "/too/"), "/too/x", 200, "", ""},
		{"no-tls-redirect-locations", only("no-tls-redirect-locations", "/plain"), only("tls", "yes", "path", "/plainer"), "/plainer", 308, "", ""},
		{"no-tls-redirect-locations", only("no-tls-redirect-locations", "/plain"), only("tls", "yes", "path", "/plain", "configuration-snippet", "rewrite ^/plain(.*)$ /moved$1 break;"), "/plain/x", 200, "uri=/moved/x ", ""},
		{"no-tls-redirect-locations", only("no-tls-redirect-locations", "/plain"), only("tls", "yes", "path", "/plainer", "configuration-snippet", "rewrite ^ /plain/x break;"), "/plainer", 308, ".test/plainer\r\n", ""},
		{"use-forwarded-headers", only("use-forwarded-headers", "true", "proxy-real-ip-cidr", "127.0.0.0/8"), only("whitelist-source-range", "10.0.0.0/8"),
			"/\nX-Forwarded-For: 10.1.1.1", 200, "", ""},
		{"proxy-real-ip-cidr", only("use-forwarded-headers", "true", "proxy-real-ip-cidr", "11.0.0.0/8"), only("whitelist-source-range", "10.0.0.0/8"),
			"/\nX-Forwarded-For: 10.1.1.1", 403, "", ""},
		{"enable-real-ip", only("enable-real-ip", "true", "proxy-real-ip-cidr", "127.0.0.1"), only("denylist-source-range", "10.0.0.0/8"),
			"/\nX-Forwarded-For: 10.1.1.1", 403, "", ""},
		{"enable-real-ip", only("force-ssl-redirect", "true", "enable-real-ip", "true", "proxy-real-ip-cidr", "127.0.0.1"), nil,
			"/x\nX-Forwarded-Host: elsewhere.example", 308, ".test/x\r\n", "elsewhere"},
		{"forwarded-for-header", only("enable-real-ip", "true", "proxy-real-ip-cidr", "127.0.0.1", "forwarded-for-header", "CF-Connecting-IP"),
			only("denylist-source-range", "10.0.0.0/8"), "/\nCF-Connecting-IP: 10.1.1.1", 403, "", ""},
		{"block-cidrs", only("block-cidrs", "10.0.0.0/8,127.0.0.1", "use-forwarded-headers", "true"), nil, "/", 403, "does not serve", ""},
		{"block-cidrs", only("block-cidrs", "here"), nil, "/", 503, "block-cidrs", ""},
		{"block-user-agents", only("block-user-agents", "bad bot,~*sp[i1]der"), nil, "/\nUser-Agent: A SP1DER/2", 403, "", ""},
		{"block-user-agents", only("block-user-agents", "Bad Bot"), nil, "/\nUser-Agent: bad bot", 403, "", ""},
		{"block-user-agents", only("block-user-agents", "bad"), nil, "/\nUser-Agent: bad bot", 200, "", ""},
		{"block-referers", only("block-referers", "~^https?://evil\\.test/"), nil, "/\nReferer: http://evil.test/x", 403, "", ""},
		{"whitelist-source-range", only("whitelist-source-range", "10.0.0.0/8"), nil, "/", 403, "", ""},
		{"whitelist-source-range", only("whitelist-source-range", "10.0.0.0/8"), only("whitelist-source-range", "127.0.0.0/8"), "/", 200, "", ""},
		{"denylist-source-range", only("denylist-source-range", "127.0.0.0/8"), nil, "/", 403, "", ""},
		{"global-auth-url", only("global-auth-url", "http://auth.test"), nil, "/", 500, "", "uri="},
		{"global-auth-url", only("global-auth-url", "ftp://auth.test"), nil, "/", 503, "global-auth-url", ""},
		{"http-snippet", only("http-snippet", "map $http_x_key $own { default none; ~^(.)-(.)$ $2; 'A b' it; } server { listen 18080; return 404; }"), only("response-headers", "X-Own: <$own>"), "/\nX-Key: a-b", 200, "X-Own: <b>\r\n", ""},
		{"http-snippet", only("http-snippet", "map $http_x_key $own { default none; ~^(.)-(.)$ $2; 'A b' it; }"), only("request-headers", "X-Original-URI: <$own>"), "/\nX-Key: a B", 200, "original=<it> ", ""},
		{"http-snippet", only("http-snippet", "geo $own { default 0; 127.0.0.0/8 1; }"), only("configuration-snippet", "if ($own) { return 402 $own; }"), "/", 402, "\r\n1", ""},
		{"http-snippet", only("http-snippet", "map $http_x $own { include /etc/own; }"), only("configuration-snippet", "if ($own) { return 403; }"), "/", 503, "guards access", ""},
		{"location-snippet", only("location-snippet", "more_set_headers 'X-Own: $host';\nproxy_buffering off;"), nil, "/", 200, "X-Own: location-snippet", ""},
		{"location-snippet", only("location-snippet", "more_set_headers 'X-Own: a';", "global-allowed-response-headers", "X-Set"), only("response-headers", "X-Set: b"), "/", 200, "X-Own: a\r\n", "leaves out"},
		{"location-snippet", only("location-snippet", "more_set_headers 'X-Own: a';"), only("configuration-snippet", "more_set_headers 'X-Own: b';"), "/", 200, "X-Own: b\r\n", "X-Own: a"},
		{"location-snippet", only("location-snippet", "proxy_set_header X-Original-URI /of/all;"), nil, "/", 200, "original=/of/all ", ""},
		{"location-snippet", only("location-snippet", "if ($request_method !~ ^(GET|HEAD)$) { return 405; }"), nil, "POST /", 405, "", "uri="},
		{"location-snippet", only("location-snippet", "if ($http_x_forwarded_proto = http) { return 308 https://$host$request_uri; }"), nil, "/x\nX-Forwarded-Proto: http", 308, ".test/x\r\n", ""},
		{"location-snippet", only("location-snippet", "allow 127.0.0.0/8; deny all;"), nil, "/", 503, "whitelist-source-range", "uri="},
		{"location-snippet", only("location-snippet", "auth_request_set $u $upstream_http_x_user; proxy_set_header X-User $u;"), nil, "/", 200, "uri=/ ", "problem"},
		{"location-snippet", only("location-snippet", "gzip on;"), nil, "/", 200, "uri=/ ", ""},
		{"server-snippet", only("server-snippet", "more_set_headers 'X-Own: a'; location ~ /\\.(git|env) { return 404; } location /metrics { deny all; }"), nil, "/x", 200, "X-Own: a\r\n", ""},
		{"server-snippet", only("server-snippet", "more_set_headers 'X-Own: a'; location ~ /\\.(git|env) { return 404; } location /metrics { deny all; }"), nil, "/x/.git/config", 404, "", "uri="},
		{"server-snippet", only("server-snippet", "location /metrics { deny all; }"), only("path", "/metrics/own"), "/metrics/own", 503, "server-snippet", "uri="},
		{"server-snippet", only("server-snippet", "proxy_set_header X-Original-URI /of/all; location /m { deny all; }"), nil, "/x", 200, "uri=/x ", "/of/all"},
		{"server-snippet", only("server-snippet", "if ($host ~ ^server-(.*)$) { return 301 https://$1$request_uri; }"), nil, "/x", 301, "Location: https://snippet", ""},
		{"hide-headers", only("hide-headers", "X-Powered-By,x-secret"), nil, "/", 200, "X-Shown", "X-Secret"},
		{"use-gzip", only("use-gzip", "true", "gzip-min-length", "1"), nil, zipped, 200, "Content-Encoding: gzip\r\n", ""},
		{"use-gzip", only("use-gzip", "true", "gzip-min-length", "1"), nil, "/\nAccept-Encoding: gzip;q=0, br", 200, "Vary: Accept-Encoding\r\n", "Content-Encoding"},
		{"use-gzip", only("use-gzip", "false", "gzip-min-length", "1"), nil, zipped, 200, "uri=/ ", "Vary"},
		{"gzip-level", only("use-gzip", "true", "gzip-min-length", "1", "gzip-level", "9"), nil, zipped, 200, "Content-Encoding: gzip\r\n", ""},
		{"gzip-min-length", only("use-gzip", "true"), nil, zipped, 200, "uri=/ ", "Vary"},
		{"gzip-types", only("use-gzip", "true", "gzip-min-length", "1", "gzip-types", "text/css"), nil, zipped, 200, "uri=/ ", "Vary"},
		{"gzip-types", only("use-gzip", "true", "gzip-min-length", "1", "gzip-types", "*"), nil, zipped, 200, "Content-Encoding: gzip\r\n", ""},
		{"gzip-disable", only("use-gzip", "true", "gzip-min-length", "1", "gzip-disable", "msie6 ^old/[12]"), nil, zipped + "\nUser-Agent: Old/2.0", 200, "Vary: Accept-Encoding\r\n", "Content-Encoding"},
		{"enable-brotli", only("use-gzip", "true", "gzip-min-length", "1", "enable-brotli", "true"), nil, "/\nAccept-Encoding: gzip, br", 200, "Content-Encoding: br\r\n", ""},
		{"brotli-level", only("enable-brotli", "true", "brotli-level", "0"), nil, "/\nAccept-Encoding: br", 200, "Content-Encoding: br\r\n", ""},
		{"brotli-min-length", only("enable-brotli", "true", "brotli-min-length", "1000"), nil, "/\nAccept-Encoding: br", 200, "uri=/ ", "Vary"},
		{"brotli-types", only("enable-brotli", "true", "brotli-types", "text/css"), nil, "/\nAccept-Encoding: br", 200, "uri=/ ", "Vary"},
		{"proxy-body-size", nil, nil, big, 413, "", ""},
		{"proxy-body-size", only("proxy-body-size", "2m"), nil, big, 200, "", ""},
		{"proxy-body-size", only("proxy-body-size", "1k"), only("proxy-body-size", "0"), big, 200, "", ""},
		{"use-port-in-redirects", only("use-port-in-redirects", "true", "force-ssl-redirect", "true"), nil, "/x", 308, ".test:443/x", ""},
		{"use-port-in-redirects", only("use-port-in-redirects", "true", "force-ssl-redirect", "true"), only("use-port-in-redirects", "false"), "/x", 308, ".test/x", ""},
		{"proxy-add-original-uri-header", only("proxy-add-original-uri-header", "true"), nil, "/x%20y?z", 200, "original=/x%20y?z ", ""},
		{"proxy-add-original-uri-header", only("proxy-add-original-uri-header", "true"), only("rewrite-target", "/new"), "/old?z\nX-Original-URI: /evil", 200, "original=/old?z ", "evil"},
		{"proxy-add-original-uri-header", only("proxy-add-original-uri-header", "true;"), nil, "/x", 200, "original= ", ""},
		{"enable-opentelemetry", nil, nil, "/", 200, "trace= ", ""},
		{"enable-opentelemetry", only("enable-opentelemetry", "true"), nil, "/", 200, "trace=00-", ""},
		{"enable-opentelemetry", only("enable-opentelemetry", "true"), nil, traced, 200, "trace=" + trace + "01 ", ""},
		{"enable-opentelemetry", only("enable-opentelemetry", "true"), only("enable-opentelemetry", "false"), "/", 200, "trace= ", ""},
		{"opentelemetry-trust-incoming-span", only("enable-opentelemetry", "true", "opentelemetry-trust-incoming-span", "false"), nil, traced, 200, "trace=00-", trace[:35]},
		{"otel-sampler", only("enable-opentelemetry", "true", "otel-sampler", "AlwaysOff"), nil, "/", 200, "-00 ", ""},
		{"otel-sampler", only("enable-opentelemetry", "true", "otel-sampler", "Sometimes"), nil, "/", 200, "-01 ", ""},
		{"otel-sampler-ratio", only("enable-opentelemetry", "true", "otel-sampler", "TraceIdRatioBased", "otel-sampler-ratio", "0"), nil, "/", 200, "-00 ", ""},
		{"otel-sampler-parent-based", only("enable-opentelemetry", "true", "otel-sampler", "AlwaysOff", "otel-sampler-parent-based", "false"), nil, traced, 200, "trace=" + trace[:35], trace},
		{"global-allowed-response-headers", only("global-allowed-response-headers", "X-Other, x-set"), only("custom-headers", "fields"), "/", 200, "X-Set: yes", ""},
		{"global-allowed-response-headers", only("global-allowed-response-headers", "X-Other"), only("custom-headers", "fields"), "/", 503, "leaves out", "X-Set: yes"},
		{"global-allowed-response-headers", only("global-allowed-response-headers", "X-Set\nX-Evil: 1"), only("custom-headers", "fields"), "/", 503, "global-allowed-response-headers", "X-Set: yes"},
		{"global-allowed-response-headers", only("global-allowed-response-headers", "X Set"), only("custom-headers", "fields"), "/", 503, "global-allowed-response-headers", "X-Set: yes"},
		{"global-allowed-response-headers", nil, only("custom-headers", "fields"), "/", 200, "X-Set: yes", ""},
		{"global-allowed-response-headers", only("global-allowed-response-headers", "X-Other"), only("configuration-snippet", "more_set_headers 'X-Own: a';"), "/", 200, "X-Own: a\r\n", ""},
		{"proxy-read-timeout", only("proxy-read-timeout", "1"), nil, "/?wait=yes", 504, "did not answer in time", ""},
		{"allow-backend-server-header", only("allow-backend-server-header", "true"), nil, "/", 200, "Server: backend\r\n", ""},
		{"allow-backend-server-header", only("allow-backend-server-header", "false", "hide-headers", "X-Secret"), nil, "/", 200, "Server: quayside\r\n", "X-Secret"},
		{"server-tokens", only("server-tokens", "false"), nil, "/", 200, "", "Server:"},
		{"server-tokens", only("server-tokens", "true", "allow-backend-server-header", "false"), nil, "/", 200, "Server: quayside\r\n", ""},
		{"allow-backend-server-header", only("allow-backend-server-header", "no"), nil, "/", 200, "Server: backend\r\n", ""},
		{"compute-full-forwarded-for", only("compute-full-forwarded-for", "true"), nil, "/", 200, "uri=/ ", ""},
		{"disable-ipv6-dns", only("disable-ipv6-dns", "true"), nil, "/", 200, "uri=/ ", ""},
		{"strict-validate-path-type", only("strict-validate-path-type", "false"), nil, "/", 200, "uri=/ ", ""},
		{"limit-req-status-code", only("limit-req-status-code", "429"), only("limit-rpm", "1", "limit-burst-multiplier", "1"), "/", 429, "", ""},
		{"annotations-risk-level", only("annotations-risk-level", "Low"), only("whitelist-source-range", "127.0.0.0/8"), "/", 503, "its risk is Medium", ""},
		{"annotations-risk-level", only("annotations-risk-level", "Low"), only("x-forwarded-prefix", "/before"), "/", 200, "prefix= ", ""},
		{"annotation-value-word-blocklist", only("annotation-value-word-blocklist", "before"), only("x-forwarded-prefix", "/before"), "/", 200, "prefix= ", ""},
		{"generate-request-id", nil, nil, "/", 200, "uri=/ ", "X-Got-Id: \r\n"},
		{"generate-request-id", only("generate-request-id", "false"), nil, "/", 200, "X-Got-Id: \r\n", ""},
		{"add-headers", only("add-headers", "default/fields"), nil, "/", 200, "X-Set: yes", "X-Got-Set: yes"},
		{"proxy-set-headers", only("proxy-set-headers", "default/fields"), nil, "/", 200, "X-Got-Set: yes", "X-Set: yes"},
		{"proxy-cookie-domain", only("proxy-cookie-domain", "in.test out.test"), nil, "/?moved", 200, "Domain=out.test", "Domain=in.test"},
		{"proxy-cookie-path", only("proxy-cookie-path", "/in /out"), nil, "/?moved", 200, "Path=/out", "Path=/in"},
		{"proxy-redirect-from", only("proxy-redirect-from", "http://in.test/", "proxy-redirect-to", "http://out.test/"), nil, "/?moved", 200, "Location: http://out.test/x", "in.test/x"},
		{"proxy-redirect-to", only("proxy-redirect-from", "http://in.test/", "proxy-redirect-to", "/to/"), nil, "/?moved", 200, "Location: /to/x", "in.test/x"},
		{"custom-http-errors", only("custom-http-errors", "410"), only("default-backend", "pages"), "/?gone", 410, "page method=", "web uri="},
		{"custom-http-errors", only("custom-http-errors", "404"), only("default-backend", "pages"), "/?gone", 410, "web uri=", "page method="},
		{"disable-proxy-intercept-errors", only("custom-http-errors", "410", "disable-proxy-intercept-errors", "true"), only("default-backend", "pages"), "/?gone", 410, "web uri=", "page method="},
		{"service-upstream", only("service-upstream", "true"), only("service", "virtual"), "/", 200, "web uri=", ""},
		{"service-upstream", nil, only("service", "virtual"), "/", 503, "has no endpoint", ""},
		{"allow-snippet-annotations", only("allow-snippet-annotations", "true"), only("configuration-snippet", "return 418; js_import x;"), "/", 200, "uri=/ ", ""},
		{"allow-snippet-annotations", nil, only("configuration-snippet", `gzip on; gzip_vary on; gzip_proxied any; gzip_comp_level 5; gzip_min_length 1; gzip_types application/json text/plain; gzip_disable "MSIE [1-6]\." "bad bot";`), zipped + "\nUser-Agent: bad; bot", 200, "Content-Encoding: gzip\r\n", ""},
		{"allow-snippet-annotations", nil, only("configuration-snippet", `gzip_types text/plain; gzip_min_length 1; gzip_disable "MSIE [1-6]\." "bad bot"; gzip on;`), zipped + "\nUser-Agent: a bad bot", 200, "uri=/ ", "Content-Encoding"},
		{"allow-snippet-annotations", nil, only("configuration-snippet", "gzip on; gzip_min_length 1;"), zipped, 200, "uri=/ ", "Content-Encoding"}, // of pages alone
		{"allow-snippet-annotations", nil, only("server-snippet", "gzip on; gzip_min_length 1; gzip_types *;"), zipped, 200, "Content-Encoding: gzip\r\n", ""},
		{"allow-snippet-annotations", nil, only("configuration-snippet", "brotli on; brotli_min_length 1; brotli_comp_level 3; brotli_types *;"), "/\nAccept-Encoding: br", 200, "Content-Encoding: br\r\n", ""},
		{"allow-snippet-annotations", only("use-gzip", "true", "gzip-min-length", "1"), only("configuration-snippet", "gzip off;"), zipped, 200, "uri=/ ", "Content-Encoding"},
		{"allow-snippet-annotations", only("use-gzip", "true", "gzip-min-length", "1"), only("configuration-snippet", "gzip on; gzip_comp_level 9;"), zipped, 200, "Content-Encoding: gzip\r\n", ""},
		{"allow-snippet-annotations", nil, only("configuration-snippet", "add_header X-Seen yes always;"), "/", 200, "X-Seen: yes", ""},
		{"allow-snippet-annotations", only("allow-snippet-annotations", "false"), only("configuration-snippet", "add_header X-Seen yes always;"), "/", 200, "uri=/ ", "X-Seen"},
		{"allow-snippet-annotations", only("allow-snippet-annotations", "false"), only("configuration-snippet", "allow 127.0.0.1; deny all;"), "/", 503, "allow-snippet-annotations of the proxy is false", ""},
	}
}

// TestGlobalOptions asks for each option of the ConfigMap over HTTP. The ConfigMap
// changes while the proxy runs.
func TestGlobalOptions(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "backend")
		w.Header().Set("X-Secret", "yes")
		w.Header().Set("X-Shown", "yes")
		w.Header().Set("X-Got-Id", r.Header.Get("X-Request-Id"))
		w.Header().Set("X-Got-Set", r.Header.Get("X-Set"))
		if r.URL.Query().Has("hsts") {
			w.Header().Set("Strict-Transport-Security", "max-age=33")
		}
		if r.URL.Query().Has("moved") {
			w.Header().Set("Set-Cookie", "a=b; Domain=in.test; Path=/in")
			w.Header().Set("Location", "http://in.test/x")
		}
		if r.URL.Query().Has("gone") {
			w.WriteHeader(410)
		}
		echoing("web").ServeHTTP(w, r)
	}))
	defer web.Close()
	at := strings.TrimPrefix(web.URL, "http://")
	port := int32(netip.MustParseAddrPort(at).Port())
	virtual := service("virtual", corev1.ServicePort{Port: port})
	virtual.Spec.ClusterIP = "127.0.0.1"
	files.Put(virtual, service("pages", corev1.ServicePort{Port: 80}), slice("pages", "", errorPages(t)))
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", at), configMap("fields", "X-Set", "yes"))
	addr := bound(p, false)
	for i, k := range globalCases() {
		if strings.Contains(k.request, "X-Forwarded-Proto") {
			k.data = maps.Clone(k.data)
			if k.data == nil {
				k.data = map[string]string{}
			}
			k.data["use-forwarded-headers"], k.data["proxy-real-ip-cidr"] = "true", "127.0.0.1"
		}
		t.Run(k.key, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wide"}, Data: k.data}
			host := fmt.Sprintf("%s-%d.test", k.key, i)
			ing := annotated("web", host, k.with)
			class := ingressclass.NginxName
			ing.Spec.IngressClassName = &class
			if k.with["service"] == "virtual" {
				ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = port
			}
			files.Put(cm, ing)
			var status int
			var said string
			right := func() bool {
				return status == k.status && strings.Contains(said, k.says) && (k.not == "" || !strings.Contains(said, k.not))
			}
			eventually(t, fmt.Sprintf("%v and %v answer %.60q with %d, %q and not %q", k.data, k.with, k.request, k.status, k.says, k.not), func() bool {
				status, said = ask(t, addr, host, k.request)
				return right()
			})
		})
	}
}
