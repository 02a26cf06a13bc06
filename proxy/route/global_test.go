package route

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

func TestGlobalTableIsSound(t *testing.T) {
	table := globalTable()
	for i, o := range table {
		if i > 0 && table[i-1].key >= o.key {
			t.Errorf("%s does not come after %s", o.key, table[i-1].key)
		}
		if o.doc == "" || (o.effect == applied) != (o.parse != nil) || o.guard && o.effect != applied {
			t.Errorf("%s lacks something: %+v", o.key, o)
		}
	}
}

func globalOf(t *testing.T, data map[string]string) *globalOptions {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "wide"}, Data: data}
	return compileGlobal(snapshot.Of(cm), Options{ConfigMap: snapshot.KeyOf(cm)}, nil)
}

// TestGlobalDefaultsAreNoNews: a ConfigMap that spells the defaults of ingress-nginx
// out is told nothing, save what only looks like its default.
func TestGlobalDefaultsAreNoNews(t *testing.T) {
	data := map[string]string{}
	for _, o := range globalTable() {
		data[o.key] = o.unset
	}
	delete(data, "proxy-real-ip-cidr")
	if w := globalOf(t, data); len(w.problems) > 0 || w.own.closed != "" {
		t.Errorf("closed %q, %v", w.own.closed, w.problems)
	}
}

// TestGlobalGuardsClose holds for every option of the ConfigMap that decides who
// may pass: what is not understood shuts all routes.
func TestGlobalGuardsClose(t *testing.T) {
	cases := map[string]string{"global-auth-uri": "http://x", "block-cidr": "10.0.0.0/8", "whitelist-source-ranges": "10.0.0.0/8", "http-snippet": "deny all;", "main-snippet": "deny all;", "stream-snippet": "deny all;", "server-snippet": "deny all;", "location-snippet": "more_set_headers 'X-A: a'; satisfy any of;"}
	for _, o := range globalTable() {
		if o.guard {
			cases[o.key] = "~(?=x)\x00/33"
		}
	}
	for key, value := range cases {
		w := globalOf(t, map[string]string{key: value})
		if w.own.closed == "" || w.nginx.closed == "" || len(w.problems) != 1 || w.problems[0].Reason != RouteClosed {
			t.Errorf("%s: %q leaves the routes open: %v", key, value, w.problems)
		}
	}
}

// TestGlobalSnippetsAreWhole: of a snippet of which one option is not understood nothing is obeyed.
func TestGlobalSnippetsAreWhole(t *testing.T) {
	for _, key := range []string{"location-snippet", "server-snippet"} {
		w := globalOf(t, map[string]string{key: "location /m { return 410; } more_set_headers 'X-A: a'; rewrite ^/a(?=b) /c redirect;", "global-allowed-response-headers": "X-B"})
		for _, s := range []*settings{&w.own, &w.nginx} {
			if len(s.filters.DeniedPaths)+len(s.filters.Headers)+len(s.answers)+len(s.hidden)+len(s.filters.Scripts) > 0 || !slices.Equal(s.mayAnswer, []string{"X-B"}) {
				t.Errorf("%s: part of it is obeyed: %+v", key, s.filters)
			}
		}
		if len(w.problems) != 1 || w.problems[0].Reason != UnsupportedOption {
			t.Errorf("%s: told is %v", key, w.problems)
		}
	}
}

// TestOwnServersGuardNothing: a server on a port of its own, as that of many guides for what
// nginx counts, is nobody's guard. One on a port of the hosts may be.
func TestOwnServersGuardNothing(t *testing.T) {
	for text, closes := range map[string]bool{
		"server { listen 18080; location /nginx_status { allow all; stub_status on; } location / { return 404; } }":      false,
		"server { listen [::]:18080 default_server; deny all; } limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;": false,
		"map $http_x $deny { default 403; }":                                         false,
		"server { listen 2443; return 308 https://$host$request_uri; }":              false,
		"server { listen 80; server_name a.test; location / { deny all; } }":         true,
		"server { listen 127.0.0.1:443 ssl; listen 8080; return 403; }":              true,
		"server { listen 18080; listen 10.0.0.1; location / { return 404; } }":       true,
		"server { listen unix:/x/18080; location / { return 404; } }":                true,
		"server { server_name a.test; location / { return 404; } }":                  true,
		"geo $x { default 1; } deny 10.0.0.1;":                                       true,
		"server { listen 18080; return 404; } access_by_lua_block { ngx.exit(403) }": true,
		"server { listen 18080; return 404; ":                                        true,
	} {
		w := globalOf(t, map[string]string{"http-snippet": text})
		table := strings.HasPrefix(text, "map")
		if (w.own.closed != "") != closes || (len(w.problems) != 1) != table || !table && !closes && w.problems[0].Reason != UnsupportedOption {
			t.Errorf("%s closes %q: %v", text, w.own.closed, w.problems)
		}
	}
}

// TestGlobalIsTold: what has no effect is told on the ConfigMap, and nothing else is
// lost for it.
func TestGlobalIsTold(t *testing.T) {
	for key, c := range map[string]struct{ value, reason string }{
		"hsts-max-ages":                   {"1", UnknownOption},
		"hsts-max-age":                    {"soon", InvalidOption},
		"http-redirect-code":              {"200", InvalidOption},
		"allow-cross-namespace-resources": {"true", UnsupportedOption},
		"log-format-upstream":             {"$nonsense", InvalidOption},
		"log-format-escape-json":          {"true", InvalidOption},
		"log-format-escape-none":          {"true", UnsupportedOption},
		"access-log-path":                 {"/var/log/all", UnsupportedOption},
		"http-snippet":                    {"gzip on;", UnsupportedOption},
		"use-geoip2":                      {"true", InvalidOption},
		"use-geoip":                       {"true", UnsupportedOption},
		"use-forwarded-headers":           {"true", InvalidOption},
		"annotations-risk-level":          {"None", InvalidOption},
	} {
		w := globalOf(t, map[string]string{key: c.value, "limit-req-status-code": "429"})
		if len(w.problems) != 1 || w.problems[0].Reason != c.reason || !strings.Contains(w.problems[0].Message, strings.TrimSuffix(key, "s")) || w.own.closed != "" || w.nginx.limitCode != 429 {
			t.Errorf("%s: %q: %v", key, c.value, w.problems)
		}
	}
	if w := compileGlobal(snapshot.Of(), Options{ConfigMap: snapshot.Key{Namespace: "n", Name: "gone"}}, nil); len(w.problems) != 1 || w.problems[0].Reason != MissingConfigMap {
		t.Errorf("missing: %v", w.problems)
	}
}

// TestGateRefuses: an annotation that is too risky has no effect, and a guard
// closes its route.
func TestGateRefuses(t *testing.T) {
	for _, c := range []struct {
		option, key, value string
		reason             string
	}{
		{"annotations-risk-level=Medium", "proxy-ssl-name", "web.n", RouteClosed},
		{"annotations-risk-level=Low", "app-root", "/x", InvalidAnnotation},
		{"annotations-risk-level=Medium", "app-root", "/x", ""},
		{"annotation-value-word-blocklist=evil, worse", "app-root", "/evil", InvalidAnnotation},
		{"annotation-value-word-blocklist=evil", "rewrite-target", "/evil", RouteClosed},
	} {
		name, value, _ := strings.Cut(c.option, "=")
		w := globalOf(t, map[string]string{name: value})
		s, findings := optionsOf(optionTable, map[string]string{NginxPrefix + c.key: c.value}, w.nginx, noRefs{})
		reasons := []string{}
		for _, f := range findings {
			reasons = append(reasons, f.reason)
		}
		if c.reason == "" && len(reasons) > 0 || c.reason != "" && !slices.Equal(reasons, []string{c.reason}) {
			t.Errorf("%s, %s: %q: told %v, want %q", c.option, c.key, c.value, reasons, c.reason)
		}
		if (s.closed != "") != (c.reason == RouteClosed) {
			t.Errorf("%s, %s: closed %q", c.option, c.key, s.closed)
		}
	}
}

// TestTablesInPart: tables that are understood are there in classes of either kind, whatever
// stands beside them.
func TestTablesInPart(t *testing.T) {
	w := globalOf(t, map[string]string{"http-snippet": `map $http_x $a { default 0; } map $nothing $b { default 1; }`})
	if len(w.problems) != 1 || !strings.Contains(w.problems[0].Message, "acts in part") {
		t.Errorf("problems: %v", w.problems)
	}
	for name, s := range map[string]*settings{"own": &w.own, "nginx": &w.nginx} {
		if _, err := s.snippets.known.ParseTemplate("$a"); err != nil {
			t.Errorf("%s classes: %v", name, err)
		}
	}
}
