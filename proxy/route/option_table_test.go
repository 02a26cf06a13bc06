package route

import (
	"slices"
	"strings"
	"testing"

	"quayside.io/cluster/ingressclass"
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
		if o.doc == "" || o.risk == "" {
			t.Errorf("%s lacks a doc or a risk", o.key)
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
		"auth-url", "auth-type", "auth-secret", "auth-tls-secret", "auth-tls-verify-client", "auth-tls-match-cn", "auth-snippet",
		"whitelist-source-range", "allowlist-source-range", "denylist-source-range", "satisfy", "enable-modsecurity",
		"auth-not-yet-invented", "authentication", "my-source-range",
	}
	for _, key := range guarding {
		for _, prefix := range []string{NginxPrefix, OwnPrefix} {
			for _, value := range []string{"x", "on", " basic ", "10.0.0.0/8"} {
				s, findings := parseOptions(func() []option { return table }, map[string]string{prefix + key: value}, ingressclass.Class{})
				if s.closed == "" || len(findings) != 1 || findings[0].reason != RouteClosed {
					t.Errorf("%s%s: %q leaves the route open: %+v %v", prefix, key, value, s, findings)
				}
			}
		}
		i := slices.IndexFunc(table, func(o option) bool { return o.key == key })
		if i >= 0 && table[i].effect == applied {
			t.Errorf("%s is obeyed now: take it out of this test and show that it guards", key)
		}
	}
}

func TestSnippetsThatGuardClose(t *testing.T) {
	for snippet, want := range map[string]bool{
		"deny all;":                                   true,
		"auth_basic \"x\";":                           true,
		"if ($x) { return 403; }":                     true,
		"limit_except GET { deny all; }":              true,
		"ssl_verify_client on;":                       true,
		"more_set_headers \"X-Frame-Options: DENY\";": false,
		"proxy_set_header X-Allowed yes;":             false,
		"client_max_body_size 403m;":                  false,
	} {
		s, _ := parseOptions(optionTable, map[string]string{NginxPrefix + "configuration-snippet": snippet}, ingressclass.Class{})
		if (s.closed != "") != want {
			t.Errorf("%q: closed is %q", snippet, s.closed)
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
