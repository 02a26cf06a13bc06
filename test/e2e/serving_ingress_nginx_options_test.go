package e2e

import (
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drawOptions draws the ConfigMap of what holds for all, with those that it names.
func (w *ingressWorld) drawOptions() {
	w.options = w.draw(6, []string{"hsts-max-age", "100"}, []string{"hide-headers", "X-Hide,X-Other"}, []string{"http-redirect-code", "301"},
		[]string{"ssl-redirect", "false"}, []string{"proxy-cookie-path", "/x /y"}, []string{"add-headers", "default/added"},
		[]string{"block-user-agents", "bad,~*curl"}, []string{"server-tokens", "true"}, []string{"block-referers", "http://bad.example,~*evil"}, []string{"block-cidrs", "192.0.2.0/24"},
		[]string{"proxy-set-headers", "default/asked"}, []string{"hsts", "false"}, []string{"hsts-include-subdomains", "false"}, []string{"hsts-preload", "true"}, []string{"force-ssl-redirect", "true"},
		[]string{"proxy-add-original-uri-header", "true"}, []string{"location-snippet", "proxy_set_header X-Location $host;"}, []string{"server-snippet", "location = /x { return 418; }", "more_set_headers 'X-Server: $host';", "if ($http_x_may = 500) { return 405; }"},
		[]string{"http-snippet", "map $http_user_agent $kind { default other; good good; } more_set_headers 'X-Kind: $kind';"}, []string{"proxy-cookie-domain", "a.example z.example"}, []string{"ignore-invalid-headers", "false"},
		[]string{"enable-underscores-in-headers", "true"}, []string{"relative-redirects", "true"}, []string{"denylist-source-range", "10.0.0.0/8"}, []string{"whitelist-source-range", "127.0.0.0/8,192.0.2.1"},
		[]string{"generate-request-id", "false"}, []string{"no-tls-redirect-locations", "/a/b", "/z,/open"}, []string{"use-gzip", "true"}, []string{"gzip-min-length", "200"},
		[]string{"gzip-types", "text/plain", "*"}, []string{"strict-validate-path-type", "false"}, []string{"proxy-request-buffering", "off"}, []string{"proxy-buffering", "on"}, []string{"limit-req-status-code", "429"},
		[]string{"ssl-redirect", "true"}, []string{"load-balance", "ewma"}, []string{"use-http2", "false"}, []string{"ssl-reject-handshake", "true"})
	if w.guarded = w.seldom(5); w.guarded {
		w.options["global-auth-url"] = w.auth
		for name, value := range w.draw(2, []string{"no-auth-locations", "/a/b,/open"}, []string{"global-auth-response-headers", "X-Auth-User"}, []string{"global-auth-method", "POST"},
			[]string{"global-auth-signin", "https://login.example/in", "https://login.example/in?rd=$escaped_request_uri"}, []string{"global-auth-signin-redirect-param", "back"}, []string{"global-auth-request-redirect", "http://away.example/"},
			[]string{"global-auth-snippet", "proxy_set_header X-Original-Method $request_method;"}, []string{"global-auth-always-set-cookie", "true"}, []string{"global-auth-cache-key", w.auth + "$http_x_may"}, []string{"global-auth-cache-duration", "200 1m"}) {
			w.options[name] = value
		}
	}
	w.options["allow-snippet-annotations"], w.options["annotations-risk-level"], w.options["global-allowed-response-headers"] = "true", "Critical", "X-Added"
	if w.believing = w.seldom(2); w.believing {
		if w.seldom(2) {
			w.options["enable-real-ip"] = "true"
		}
		w.options["use-forwarded-headers"], w.options["compute-full-forwarded-for"], w.options["proxy-real-ip-cidr"] = "true", "true", "127.0.0.0/8"
	}
	if !w.believing && w.options["block-cidrs"] == "" && w.seldom(3) {
		if w.passed = "192.0.2.1"; w.options["whitelist-source-range"] == "" && w.seldom(2) { // which all may pass from
			w.passed = "192.0.2.77"
		}
		w.options["use-proxy-protocol"], w.options["proxy-real-ip-cidr"] = "true", "127.0.0.0/8"
	}
	for name, data := range map[string]map[string]string{"options": w.options, "added": {"X-Added": "yes"}, "asked": {"X-Asked": "for $host", "X-Own": ""}} {
		w.add("v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data})
	}
}

// drawFlags draws what answers for hosts without a certificate, and for what no rule is for.
func (w *ingressWorld) drawFlags() {
	w.flags.ConfigMap, w.flags.ValidateAnnotations, w.flags.Passthrough = "default/options", w.seldom(2), w.passed == "" && w.seldom(2)
	if w.seldom(2) {
		w.flags.DefaultSSLCertificate = "default/" + w.pair("fallback", time.Hour, "*.nobody.example", "fallback.example")
	}
	if w.seldom(2) {
		w.flags.DefaultBackendService = "default/" + w.serviceOf(startDefault)
		if w.options["global-auth-signin"] == "" && w.seldom(2) { // with which nginx forgets the pages for all
			w.options["custom-http-errors"] = pick(w.dice, "404", "404,503", "503")
		}
	}
}

// startDefault starts a pod for what nobody answers, which has no errors of its own: there it would
// be asked again for them.
func startDefault(name string) *httptest.Server {
	answer := pod(name)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Code") == "" {
			w = &always{w}
		}
		answer.ServeHTTP(w, r)
	}))
}

// always answers with 200.
type always struct{ http.ResponseWriter }

func (w *always) WriteHeader(int) { w.ResponseWriter.WriteHeader(http.StatusOK) }
