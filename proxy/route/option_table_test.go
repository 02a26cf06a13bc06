package route

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/proxy/snippet"
)

func TestOptionTableIsSound(t *testing.T) {
	table := optionTable()
	if len(table) < 130 {
		t.Errorf("%d options: ingress-nginx has more", len(table))
	}
	for i, o := range table {
		if i > 0 && table[i-1].key >= o.key {
			t.Errorf("%s does not come after %s", o.key, table[i-1].key)
		}
		if o.doc == "" || o.risk == "" || o.scope == "" {
			t.Errorf("%s lacks a doc, a risk or a scope", o.key)
		}
		if o.parse != nil && o.unset != "" {
			s := defaults(ingressclass.Class{Nginx: true})
			if err := o.parse(&s, o.unset); err != nil {
				t.Errorf("the default of %s is no value of it: %v", o.key, err)
			}
		}
		if (o.effect == applied) != (o.parse != nil) {
			t.Errorf("%s has effect %d, but parse is set: %v", o.key, o.effect, o.parse != nil)
		}
	}
}

// TestGuardsCloseTheRoute holds for every option that decides who may pass, in
// both prefixes: until it is obeyed, the route is shut.
func TestGuardsCloseTheRoute(t *testing.T) {
	table := optionTable()
	guarding := []string{
		"auth-not-yet-invented", "authentication", "my-source-range",
	}
	for _, key := range guarding {
		for _, prefix := range []string{NginxPrefix, OwnPrefix} {
			for _, value := range []string{"x", "on", " basic ", "10.0.0.0/8"} {
				s, findings := optionsOf(func() []option { return table }, map[string]string{prefix + key: value}, defaults(ingressclass.Class{}), noRefs{})
				if s.closed == "" || len(findings) != 1 || findings[0].reason != RouteClosed {
					t.Errorf("%s%s: %q leaves the route open: %+v %v", prefix, key, value, s, findings)
				}
			}
		}
	}
}

// noRefs is a cluster without Secrets.
type noRefs struct{}

func (noRefs) configMap(string) (*corev1.ConfigMap, error) { return nil, errors.New("there is none") }
func (noRefs) secret(string) (*corev1.Secret, error)       { return nil, errors.New("is not there") }
func (noRefs) anyHost() bool                               { return false }
func (noRefs) zone() string                                { return "n/i" }
func (noRefs) paths() []snippet.Path                       { return nil }

// TestGuardsThatAreNotUnderstoodClose: an option that is obeyed, and that the
// wrong value of would lead requests past a guard or to another place, closes.
func TestGuardsThatAreNotUnderstoodClose(t *testing.T) {
	table := optionTable()
	for _, o := range table {
		if !o.guard {
			continue
		}
		for _, value := range []string{"x\ny", "\x00", strings.Repeat("x", 10_000), "digest", "$http_x", "300.0.0.0/8", "10.0.0.0/8 11.0.0.0/8"} {
			if o.parse(&settings{}, value) == nil && o.key != "auth-secret" {
				continue // it may be meaningful to this one
			}
			s, findings := optionsOf(func() []option { return table }, map[string]string{OwnPrefix + o.key: value}, defaults(ingressclass.Class{}), noRefs{})
			if s.closed == "" || len(findings) == 0 || findings[0].reason != RouteClosed {
				t.Errorf("%s: %q leaves the route open: %+v %v", o.key, value, s, findings)
			}
		}
	}
	for _, wrong := range []map[string]string{
		{"auth-secret": "users"},
		{"auth-type": "basic"},
		{"auth-type": "digest", "auth-secret": "users"},
		{"auth-type": "basic", "auth-secret": "users"},
		{"auth-realm": "here"},
		{"whitelist-source-range": " , "},
		{"whitelist-source-range": "10.0.0.0/8", "allowlist-source-range": "10.0.0.0/8"},
		{"denylist-source-range": "fe80::1%eth0"},
		{"denied-paths": "admin"},
		{"denied-paths": "/a\n~ (?=x)"},
		{"denied-paths": "/a 403 /b"},
		{"denied-paths": "~*"},
		{"denied-paths": "= /a?b"},
		{"denied-paths": strings.Repeat("/a\n", maxLines+1)},
		{"denied-requests": "$request_method"},
		{"denied-requests": "$request_method ="},
		{"denied-requests": "$request_method == POST"},
		{"denied-requests": "$request_method ! POST"},
		{"denied-requests": "request_method = POST"},
		{"denied-requests": "$requests = POST"},
		{"denied-requests": "$1 = POST"},
		{"denied-requests": "$request_method = POST 200"},
		{"denied-requests": "$request_method = POST or GET"},
		{"denied-requests": `$request_method = "POST" or`},
		{"denied-requests": "$http_x ~ (?=x)"},
		{"denied-requests": "$uri = /admin"},
		{"denied-requests": strings.Repeat("$request_method = POST\n", maxLines+1)},
		{"satisfy": "either"},
		{"auth-tls-secret": "users"},
		{"auth-tls-verify-client": "on"},
		{"auth-tls-secret": "users", "auth-tls-verify-client": "perhaps"},
		{"auth-tls-secret": "users", "auth-tls-verify-depth": "-1"},
		{"auth-tls-match-cn": "CN=ann"},
		{"auth-tls-match-cn": "O=shop"},
		{"auth-tls-match-cn": "CN=(?=x)"},
		{"auth-tls-error-page": "/error"},
		{"auth-tls-error-page": "https://$http_x/"},
		{"auth-tls-pass-certificate-to-upstream": "maybe"},
		{"auth-url": "http://"},
		{"auth-url": "ftp://auth.test/"},
		{"auth-url": "//auth.test/"},
		{"auth-url": "/auth"},
		{"auth-url": "http://$http_x/"},
		{"auth-url": "http://auth.$arg_x/"},
		{"auth-url": "http://$host$cookie_a/"},
		{"auth-url": "http://me@auth.test/"},
		{"auth-url": "http://$nothing/"},
		{"auth-url": "http://auth.test/ x"},
		{"auth-method": "POST"},
		{"auth-signin": "https://$host/"},
		{"auth-url": "http://auth.test/", "auth-method": "BREW"},
		{"auth-url": "http://auth.test/", "auth-method": "CONNECT"},
		{"auth-url": "http://auth.test/", "auth-signin": "https://$arg_to/"},
		{"auth-url": "http://auth.test/", "auth-signin": "//elsewhere"},
		{"auth-url": "http://auth.test/", "auth-signin-redirect-param": "a=b&c"},
		{"auth-url": "http://auth.test/", "auth-response-headers": "X-User, Content-Length"},
		{"auth-url": "http://auth.test/", "auth-response-headers": "X User"},
		{"auth-url": "http://auth.test/", "auth-proxy-set-headers": "missing"},
		{"auth-url": "http://auth.test/", "auth-cache-key": "$nothing"},
		{"auth-url": "http://auth.test/", "auth-cache-duration": "soon"},
		{"auth-url": "http://auth.test/", "auth-cache-duration": "200 5m, "},
		{"auth-url": "http://auth.test/", "auth-always-set-cookie": "perhaps"},
		{"use-regex": "maybe"},
	} {
		given := map[string]string{}
		for key, value := range wrong {
			given[NginxPrefix+key] = value
		}
		if s, _ := optionsOf(optionTable, given, defaults(ingressclass.Class{}), noRefs{}); s.closed == "" || !s.guards() {
			t.Errorf("%v leaves the route open", wrong)
		}
	}
}

func TestSnippetsThatGuardClose(t *testing.T) {
	for text, want := range map[string]bool{
		"deny all;":                              false, // it is obeyed
		"allow ::1; deny ::2;":                   true,
		"auth_basic \"x\";":                      true,
		"if ($x) { return 403; }":                true,
		"limit_except GET { auth_basic staff; }": true,
		"location = /metrics { proxy_pass http://x; return 404; }": true,
		"if ($scheme = http) { proxy_pass http://x; return 405; }": true,
		"location /x/ { internal; }":                               true,
		"error_page 404 /x; return 302 /404;":                      false,
		"return 301 https://x.test/internal;":                      false,
		"ssl_verify_client on;":                                    true,
		"more_set_headers \"X-Frame-Options: DENY\";":              false,
		"proxy_set_header X-Allowed yes;":                          false,
		"client_max_body_size 403m;":                               false,
	} {
		s, _ := optionsOf(optionTable, map[string]string{NginxPrefix + "configuration-snippet": text}, defaults(ingressclass.Class{}), noRefs{})
		if (s.closed != "") != want {
			t.Errorf("%q: closed is %q", text, s.closed)
		}
	}
}

func TestRiskIsOfTheScale(t *testing.T) {
	for _, o := range optionTable() {
		if !slices.Contains([]risk{riskLow, riskMedium, riskHigh, riskCritical}, o.risk) {
			t.Errorf("%s: risk %q", o.key, o.risk)
		}
		if strings.HasSuffix(o.key, "-snippet") && o.risk != riskCritical {
			t.Errorf("%s: raw configuration is Critical", o.key)
		}
	}
}

// optionsOf is what becomes of settings s by annotations.
func optionsOf(options func() []option, annotations map[string]string, s settings, r refs) (*settings, []finding) {
	findings := parseOptions(options, annotations, &s, r)
	return &s, findings
}
