package proxy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestDrawnCORSSameAsNginx draws cors-* and who asks, beside the directives that ingress-nginx
// makes of them. Not drawn is "*" among other origins, with which ingress-nginx gives credentials
// to all.
func TestDrawnCORSSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := corsDrawer{parts}
	compareWithNginx(t, draw.cases(count, draw.options, draw.request))
}

// corsDrawer draws CORS.
type corsDrawer struct{ snippetDrawer }

func (d corsDrawer) options() sameCase {
	said := corsDefaults()
	c := sameCase{with: map[string]string{"enable-cors": "true"}}
	for _, option := range [][]string{
		{"cors-allow-origin", "*", "https://a.test", "https://*.a.test", "https://a.test, http://b.test:8080", "HTTPS://A.test,https://*.b.test:8443", "https://*.c.a.test , https://b.test"},
		{"cors-allow-methods", "GET", "PUT, GET, POST, OPTIONS"},
		{"cors-allow-headers", "X-A", "X-A, X-B,Content-Type"},
		{"cors-allow-credentials", "true", "false"},
		{"cors-expose-headers", "X-A", "X-A, X-User", "*"},
		{"cors-max-age", "7", "0", "-1"},
	} {
		if name := option[0]; d.IntN(2) == 0 {
			said[name] = d.of(option[1:]...)
			c.with[name] = said[name]
		}
	}
	c.inside = corsDirectives(said)
	return c
}

// corsDefaults are what cors-* mean where they are not said.
func corsDefaults() map[string]string {
	return map[string]string{
		"cors-allow-origin": "*", "cors-allow-methods": "GET, PUT, POST, DELETE, PATCH, OPTIONS", "cors-allow-credentials": "true", "cors-expose-headers": "", "cors-max-age": "1728000",
		"cors-allow-headers": "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization",
	}
}

// corsDirectives are those of ingress-nginx.
func corsDirectives(said map[string]string) string {
	allowed := "set $http_origin *; set $cors 'true';"
	if said["cors-allow-origin"] != "*" {
		var patterns []string
		for origin := range strings.SplitSeq(said["cors-allow-origin"], ",") {
			pattern := regexp.QuoteMeta(strings.TrimSpace(origin))
			patterns = append(patterns, "("+strings.Replace(pattern, `\*`, `[A-Za-z0-9\-]+`, 1)+")")
		}
		allowed = fmt.Sprintf("if ($http_origin ~* (%s)$ ) { set $cors 'true'; }", strings.Join(patterns, "|"))
	}
	fields := "more_set_headers 'Access-Control-Allow-Origin: $http_origin'; "
	if said["cors-allow-credentials"] == "true" {
		fields += "more_set_headers 'Access-Control-Allow-Credentials: true'; "
	}
	for _, field := range [][2]string{{"Methods", "cors-allow-methods"}, {"Headers", "cors-allow-headers"}} {
		fields += fmt.Sprintf("more_set_headers 'Access-Control-Allow-%s: %s'; ", field[0], said[field[1]])
	}
	if expose := said["cors-expose-headers"]; expose != "" {
		fields += fmt.Sprintf("more_set_headers 'Access-Control-Expose-Headers: %s'; ", expose)
	}
	fields += fmt.Sprintf("more_set_headers 'Access-Control-Max-Age: %s'; ", said["cors-max-age"])
	return "set $cors ''; " + allowed + " if ($request_method = 'OPTIONS') { set $cors ${cors}options; } if ($cors = 'true') { " + fields + "} if ($cors = 'trueoptions') { " + fields + "return 204; }"
}

func (d corsDrawer) request() string {
	lines := []string{d.of("GET ", "GET ", "OPTIONS ", "OPTIONS ", "POST ", "HEAD ") + d.of("/x", "/x", "/status/404", "/status/500", "/status/204")}
	if d.IntN(6) > 0 {
		lines = append(lines, "Origin: "+d.of("https://a.test", "https://x.a.test", "https://x.c.a.test", "https://evil.test", "https://a.test.evil.test", "https://xa.test", "HTTPS://X.A.TEST", "null", "https://x.y.a.test",
			"https://a.test:8443", "http://a.test", "http://b.test:8080", "https://-.b.test:8443", "https://b.test", "https://x_y.a.test", "https://.a.test", "*", "a.test"))
	}
	if d.IntN(2) == 0 {
		lines = append(lines, "Access-Control-Request-Method: "+d.of("PUT", "GET"), "Access-Control-Request-Headers: x-a")
	}
	if d.IntN(2) == 0 {
		fields := append([]string{"X-Said:yes"}, d.some(3, []string{"Access-Control-Allow-Origin:*", "Access-Control-Allow-Origin:https://own.test"}, []string{"Access-Control-Allow-Methods:OWN"},
			[]string{"Access-Control-Allow-Credentials:true"}, []string{"Access-Control-Expose-Headers:X-Own"}, []string{"Access-Control-Max-Age:9"}, []string{"Vary:Origin", "Vary:Cookie"})...)
		lines = append(lines, "X-Says: "+strings.Join(fields, "|"))
	}
	return strings.Join(lines, "\n")
}
