package proxy_test

import (
	"strings"
	"testing"
)

// TestDetoursSameAsNginx gives snippets to nginx with ifs that have another asked.
func TestDetoursSameAsNginx(t *testing.T) {
	requests := []string{"/x?a=b", "/x?a=0", "/x", "/api/x?a=b&c", "POST /api/x?a=c\nX-Own: 1\n\nbody5", "/docs?b=1", "/docs?a=b&b=1", "HEAD /x?a=b", "/status/404?a=b", "/x?a=d", "/robots.txt?a=b",
		"/x\nUser-Agent: Googlebot/2.1", "/app.js?a=b\nUser-Agent: bingbot", "/x?_escaped_fragment_=\nUser-Agent: Prerender"}
	const prerender = `proxy_set_header X-Own token; set $prerender 0;
		if ($http_user_agent ~* "googlebot|bingbot") { set $prerender 1; }
		if ($args ~ "_escaped_fragment_") { set $prerender 1; }
		if ($http_user_agent ~ "Prerender") { set $prerender 0; }
		if ($uri ~* "\.(js|css|xml)") { set $prerender 0; }
		if ($prerender = 1) { set $prerender "new.default.svc"; rewrite .* /$scheme://$host$request_uri? break; proxy_pass http://$prerender; }`
	var cases []sameCase
	for _, c := range [][2]string{
		{prerender, ``},
		{`if ($arg_a = b) { proxy_pass http://new.default.svc; }`, ``},
		{`if ($arg_a = b) { proxy_pass http://new.default.svc; } if ($arg_b) { add_header X-B b always; }`, ``},
		{`if ($arg_b) { set $of b; } if ($arg_a) { proxy_pass http://new.default.svc; add_header X-A a always; } if ($arg_a = d) { proxy_pass http://errors.default.svc; } add_header X-Of "$of" always;`, ``},
		{`set $to http://errors.default.svc; if ($request_method = POST) { proxy_pass $to; } if ($arg_a = b) { set $seen new.default.svc; proxy_pass http://$seen; break; }`, ``},
		{`if ($uri ~ ^/do(.*)$) { proxy_pass http://new.default.svc/v1/$1$is_args$args; }`, ``},
		{`if ($arg_a = b) { rewrite ^/api/(.*)$ /$1 break; proxy_pass http://new.default.svc$uri?of=$1; }`, ``},
		{`if ($arg_a = b) { proxy_pass http://new.default.svc$request_uri; } rewrite ^/x$ /moved break;`, ``},
		{`if ($arg_a = b) { proxy_pass http://new.default.svc; } rewrite ^/x$ /docs last; return 204;`, ``},
		{`if ($arg_a = b) { proxy_pass http://new.default.svc; } error_page 404 = @page; proxy_intercept_errors on;`, `location @page { return 200 fine; }`},
		{``, `location /api { if ($arg_a = b) { proxy_pass http://errors.default.svc; } proxy_pass http://new.default.svc; proxy_set_header Host $http_host; FIELDS }`},
		{``, `set $seen $arg_a; location ~ ^/(a.*)$ { set $at $1; if ($seen = b) { proxy_pass http://errors.default.svc/of/$at; } proxy_pass http://new.default.svc/$at; proxy_set_header Host $http_host; FIELDS }`},
	} {
		cases = append(cases, passing(c[0], c[1], requests...))
	}
	cases = append(cases, passing(strings.ReplaceAll(prerender, "set $prerender 0", "set $prerender $arg_b"), "").rewriting("/do(.*)", "/b$1"))
	if asked := compareWithNginx(t, cases); asked < 250 {
		t.Errorf("%d requests", asked)
	}
}
