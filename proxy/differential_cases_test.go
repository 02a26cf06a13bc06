package proxy_test

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// sameCase is an option and what ingress-nginx's documentation says becomes of it:
// directives, written by hand. In all of them HOST is the host of the case, N its
// number, and WEB, NEW, ERRORS and GATE are addresses of backends.
type sameCase struct {
	with   map[string]string // annotations, and what annotated takes
	server string            // directives of the server
	inside string            // of the location
	match  string            // the location, "/" by default

	http     string            // directives outside of the server
	pass     string            // instead of http://WEB
	canary   map[string]string // annotations of a canary that leads to NEW
	also     string            // asked under this host, too
	requests []string          // beside sameRequests
}

func sameCases() []sameCase {
	only := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	return append(sameRoutes(only), append(sameAnswers(only), sameGuards(only)...)...)
}

// ofSnippet is a snippet, which is to do here what it does in nginx's location.
func ofSnippet(text string) sameCase {
	return sameCase{with: map[string]string{"configuration-snippet": text}, inside: text}
}

// hiding is the same of a snippet of the server.
func hiding(text string) sameCase {
	return sameCase{with: map[string]string{"server-snippet": text}, server: text, requests: []string{"/adm/x", "/a/.git/x", "/WP-login.php"}}
}

// sameRoutes are options about what becomes of a request.
func sameRoutes(only func(...string) map[string]string) []sameCase {
	rewrite := func(path, to string) sameCase {
		return sameCase{with: only("rewrite-target", to, "use-regex", "true", "path", path), inside: `rewrite "(?i)` + path + `" ` + to + ` break;`, match: `~* "^` + path + `"`}
	}
	regex := func(path string) sameCase {
		return sameCase{with: only("use-regex", "true", "path", path), match: `~* "^` + path + `"`}
	}
	canary := func(variable, choices string, requests []string, options ...string) sameCase {
		return sameCase{canary: only(append(options, "canary", "true")...), http: "map " + variable + " $to_N { " + choices + " }", pass: "$to_N", requests: requests}
	}
	prefixed := rewrite("/api(/|$)(.*)", "/$2")
	prefixed.with["x-forwarded-prefix"], prefixed.with["upstream-vhost"] = "/api", "inner.test"
	prefixed.inside += "proxy_set_header X-Forwarded-Prefix /api; proxy_set_header Host inner.test;"
	return []sameCase{
		{},
		rewrite("/api/(.*)", "/$1"), rewrite("/api(/|$)(.*)", "/$2"), rewrite("/a/(b+)/(.*)", "/$2/$1"), rewrite("/api", "/fixed"), rewrite("/api/(.*)", "/$1?k=v"),
		rewrite("/api/(.+)", "/$1/"), rewrite("/(api|a)/([^/]+)/?(.*)", "/$2/in/$1/$3?from=$1"),
		rewrite("/api/(.*)", "/on/$host/$1"), rewrite("/(x)", "/$1$1?by=$request_method"),
		regex("/a.*z"), regex("/[a-c]+/x"), regex("/x$"),
		{with: only("upstream-vhost", "inner.test"), inside: "proxy_set_header Host inner.test;"},
		{with: only("x-forwarded-prefix", "/before"), inside: "proxy_set_header X-Forwarded-Prefix /before;"},
		prefixed,
		{with: only("upstream-vhost", "in.$host"), inside: "proxy_set_header Host in.$host;"},
		{with: only("upstream-vhost", "$1.test", "use-regex", "true", "path", "/([a-z]+)/?.*"), inside: "proxy_set_header Host $1.test;", match: `~* "^/([a-z]+)/?.*"`},
		{with: only("request-headers", "X-Script-Name: /in/$1\nAccept-Encoding:\nX-Seen: $remote_addr, $host"), inside: `proxy_set_header X-Script-Name /in/$1; proxy_set_header Accept-Encoding ""; proxy_set_header X-Seen "$remote_addr, $host";`,
			requests: []string{"/x\nAccept-Encoding: gzip\nX-Script-Name: /mine"}},
		ofSnippet(`proxy_set_header X-Script-Name /in$uri; proxy_set_header Accept-Encoding ""; # "quoted"
			add_header X-Seen '$remote_addr, "$host"' always; add_header Cache-Control "public, max-age=60"; proxy_hide_header Content-Type;`),
		ofSnippet(`deny 10.0.0.0/8; deny ::1; allow 127.0.0.0/8; deny all;`),
		ofSnippet(`deny 127.0.0.1; allow 127.0.0.0/8; deny all;`),
		ofSnippet(`deny 127.0.0.2; allow all;`),
		ofSnippet(`deny all;`),
		ofSnippet(`allow 10.0.0.0/8; allow ::1; deny all; add_header X-Seen yes always;`),
		ofSnippet(`allow 127.0.0.0/8; deny all; if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; } if ($http_x_own) { return 410; } if ($http_referer ~* "r.*\.test") { return 401; }`),
		ofSnippet(`proxy_cookie_flags ~ httponly samesite=lax; proxy_buffering off;`),
		ofSnippet(`add_header X-Seen yes; if ($request_method = PUT) { return 405; } if ($http_cookie) { return 307 https://new.test$request_uri; } rewrite "^/x?$" https://new.test/start permanent;
			if ($host ~ ^case-(.*)$) { return 303 https://$1/in$request_uri; }`),
		{with: map[string]string{"configuration-snippet": `location /adm { deny all; } location ~* \.git { return 404; } add_header X-Seen yes always;`},
			inside: `location /adm { deny all; } location ~* \.git { return 404; } add_header X-Seen yes always;`, requests: []string{"/x", "/adm/x", "/Adm", "//adm", "/a/.GIT/x", "/a/git"}},
		ofSnippet(`if ($request_method = PUT) { return 405; } rewrite ^/x$ /other?a=b break; rewrite ^/(.*)/(.+)$ /$2/$1? break; proxy_set_header X-Seen $request_uri;`),
		ofSnippet(`allow 10.0.0.0/8; deny all; if ($http_referer) { rewrite ^/(.*)$ https://new.test/seen/$1 redirect; }`),
		{with: only("x-forwarded-prefix", "/$1", "use-regex", "true", "path", "/([a-z]+)/?.*"), inside: "proxy_set_header X-Forwarded-Prefix /$1;", match: `~* "^/([a-z]+)/?.*"`},
		{with: only("proxy-body-size", "4"), inside: "client_max_body_size 4;"},
		{with: only("proxy-body-size", "0"), inside: "client_max_body_size 0;"},
		{with: only("path", "/sub"), match: "/sub"},
		{with: only("server-alias", "alias.test"), server: "server_name alias.test;", also: "alias.test"},
		canary("$http_x_canary", "default http://WEB; ~^always$ http://NEW;",
			[]string{"/x\nX-Canary: always", "/x\nX-Canary: never", "/x\nX-Canary: else", "/x\nX-Canary: ALWAYS"}, "canary-by-header", "X-Canary"),
		canary("$http_x_canary", "default http://WEB; blue http://NEW;",
			[]string{"/x\nX-Canary: always", "/x\nX-Canary: blue", "/x\nX-Canary: never"}, "canary-by-header", "X-Canary", "canary-by-header-value", "blue"),
		canary("$cookie_try", "default http://WEB; ~^always$ http://NEW;",
			[]string{"/x\nCookie: try=always", "/x\nCookie: a=b; try=never", "/x\nCookie: a=b; try=always; c=d"}, "canary-by-cookie", "try"),
		canary("$http_x_canary$cookie_try", "default http://NEW; never http://WEB; alwaysnever http://NEW;",
			[]string{"/x\nX-Canary: never", "/x\nCookie: try=never", "/x\nX-Canary: always\nCookie: try=never"},
			"canary-by-header", "X-Canary", "canary-by-cookie", "try", "canary-weight", "100"),
		canary("$http_x_forwarded_for", "default http://WEB; ~^9 http://NEW;",
			[]string{"/x\nX-Forwarded-For: 9.9.9.9", "/x\nX-Forwarded-For: 127.0.0.1, 9.9.9.9"}, "canary-by-header", "X-Forwarded-For", "canary-by-header-pattern", "^9"),
		canary("$http_x_forwarded_host", "default http://WEB; evil.test http://NEW;", nil, "canary-by-header", "x-forwarded-host", "canary-by-header-value", "evil.test"),
		canary("$uri", "default http://WEB;", nil, "canary-weight", "0"),
		canary("$uri", "default http://NEW;", nil, "canary-weight", "100"),
	}
}

// sameAnswers are options about what a client is answered.
func sameAnswers(only func(...string) map[string]string) []sameCase {
	origins := []string{"/x\nOrigin: https://x.a.test", "/x\nOrigin: https://b.test:8443", "/x\nOrigin: https://a.test", "/x\nOrigin: https://x.y.a.test",
		"OPTIONS /x\nOrigin: https://b.test:8443", "OPTIONS /x\nOrigin: https://evil.test", "/status/404\nOrigin: https://x.a.test"}
	const corsFields = " add_header Access-Control-Allow-Methods $ok_N always; add_header Access-Control-Max-Age $age_N always;"
	return []sameCase{
		{with: only("permanent-redirect", "https://new.example/x"), inside: "return 301 https://new.example/x;"},
		{with: only("direct-response", "200 User-agent: *"), inside: `default_type text/plain; return 200 "User-agent: *";`},
		{with: only("direct-response", "200 $request_method $uri$is_args$args $host"), inside: `default_type text/plain; add_header X-Content-Type-Options nosniff always; return 200 "$request_method $uri$is_args$args $host";`},
		{with: only("direct-response", "418 short and stout", "response-headers", "X-A: b"), inside: `default_type text/plain; add_header X-A b always; return 418 "short and stout";`},
		{with: only("permanent-redirect", "https://new.example", "permanent-redirect-code", "308"), inside: "return 308 https://new.example;"},
		{with: only("temporal-redirect", "https://new.example/y?z=1"), inside: "return 302 https://new.example/y?z=1;"},
		{with: only("temporal-redirect", "https://new.example", "temporal-redirect-code", "307"), inside: "return 307 https://new.example;"},
		{with: only("temporal-redirect", "https://one.example", "permanent-redirect", "https://two.example"), inside: "return 302 https://one.example;"},
		{with: only("permanent-redirect", "https://new.example$request_uri"), inside: "return 301 https://new.example$request_uri;"},
		{with: only("permanent-redirect", "$scheme://new.example/in$request_uri"), inside: "return 301 $scheme://new.example/in$request_uri;"},
		{with: only("temporal-redirect", "https://www.$host/?from=$arg_y"), inside: "return 302 https://www.$host/?from=$arg_y;"},
		{with: only("permanent-redirect", "https://new.example/$1", "use-regex", "true", "path", "/a(?:/(.*))?"), inside: "return 301 https://new.example/$1;", match: `~* "^/a(?:/(.*))?"`},
		{with: only("app-root", "/app"), server: "if ($uri = /) { return 302 $scheme://$http_host/app; }"},
		{with: only("app-root", "/app", "rewrite-target", "/in/$1", "use-regex", "true", "path", "/(.*)"),
			server: "if ($uri = /) { return 302 $scheme://$http_host/app; }", inside: `rewrite "(?i)/(.*)" /in/$1 break;`, match: `~* "^/(.*)"`},
		{with: only("from-to-www-redirect", "true"), http: "server { listen LISTEN; server_name www.HOST; return 308 $scheme://HOST$request_uri; }", also: "www.HOST"},
		{with: only("force-ssl-redirect", "true"), server: "return 308 https://$host$request_uri;"},
		{with: only("proxy-redirect-from", "http://inner.test/app", "proxy-redirect-to", "https://shop.test"), inside: "proxy_redirect http://inner.test/app https://shop.test;"},
		{with: only("proxy-redirect-from", "http://inner.test/", "proxy-redirect-to", "http://shop.test/in/"), inside: "proxy_redirect http://inner.test/ http://shop.test/in/;"},
		{with: only("proxy-redirect-from", "http://elsewhere.test/", "proxy-redirect-to", "/"), inside: "proxy_redirect http://elsewhere.test/ /;"},
		{with: only("proxy-redirect-from", "http://inner.test", "proxy-redirect-to", "$scheme://$host:81"), inside: "proxy_redirect http://inner.test $scheme://$host:81;"},
		{with: only("proxy-redirect-from", "~^http://[^/]+/([a-z]+)(/.*)$", "proxy-redirect-to", "https://$1.shop.test$2"), inside: `proxy_redirect ~^http://[^/]+/([a-z]+)(/.*)$ https://$1.shop.test$2;`},
		{with: only("proxy-redirect-from", "~INNER", "proxy-redirect-to", "/"), inside: "proxy_redirect ~INNER /;"},
		{with: only("proxy-redirect-from", "~*//INNER.*/(APP)", "proxy-redirect-to", "http://$host/$1"), inside: "proxy_redirect ~*//INNER.*/(APP) http://$host/$1;"},
		{with: only("proxy-cookie-domain", "~^INNER\\.(.*)$ shop.$1", "proxy-cookie-path", "~^/(a.)p /$1"), inside: `proxy_cookie_domain ~^INNER\.(.*)$ shop.$1; proxy_cookie_path ~^/(a.)p /$1;`},
		{with: only("proxy-cookie-path", "~^/APP /"), inside: "proxy_cookie_path ~^/APP /;"},
		{with: only("proxy-cookie-path", "~*^/APP \"/; HttpOnly\""), inside: `proxy_cookie_path ~*^/APP "/; HttpOnly";`},
		{with: only("proxy-cookie-domain", "inner.test $host"), inside: "proxy_cookie_domain inner.test $host;"},
		{with: only("proxy-cookie-path", "/app /$1", "use-regex", "true", "path", "/([a-z]+)/?.*"), inside: "proxy_cookie_path /app /$1;", match: `~* "^/([a-z]+)/?.*"`},
		{with: only("proxy-cookie-domain", "inner.test \"shop.test; Secure\""), inside: `proxy_cookie_domain inner.test "shop.test; Secure";`},
		{with: only("proxy-cookie-domain", "inner.test shop.test"), inside: "proxy_cookie_domain inner.test shop.test;"},
		{with: only("success-headers", "X-Up: $uri"), inside: "add_header X-Up $uri;", requests: []string{"/status/404", "/status/201", "/status/308", "/status/500", "/status/206"}},
		{with: only("proxy-cookie-flags", "~ secure httponly samesite=strict"), inside: "proxy_cookie_flags ~ secure httponly samesite=strict;"},
		{with: only("proxy-cookie-flags", "A nosecure\n~. httponly samesite=none"), inside: "proxy_cookie_flags A nosecure; proxy_cookie_flags ~. httponly samesite=none;"},
		{with: only("proxy-cookie-flags", "b nosecure\n~^A$ nosamesite nohttponly httponly", "proxy-cookie-path", "/app /"), inside: "proxy_cookie_flags b nosecure; proxy_cookie_flags ~^A$ nosamesite nohttponly httponly; proxy_cookie_path /app /;"},
		{with: only("proxy-cookie-path", "/app /"), inside: "proxy_cookie_path /app /;"},
		{with: only("proxy-cookie-path", "/app/ /", "proxy-cookie-domain", ".INNER.test shop.test"), inside: "proxy_cookie_path /app/ /; proxy_cookie_domain .INNER.test shop.test;"},
		{with: only("custom-headers", "default/fields"), inside: `add_header X-Seen "$request_method $host$request_uri $server_protocol $https." always; add_header X-Set "a, b" always; add_header Content-Security-Policy "default-src 'self'" always;`, requests: []string{"/status/404"}},
		{with: only("response-headers", "X-Frame-Options: DENY\nX-Seen: $request_method $host"), inside: `add_header X-Frame-Options DENY always; add_header X-Seen "$request_method $host" always;`, requests: []string{"/status/404"}},
		{with: only("custom-http-errors", "404,503", "default-backend", "errors"), requests: []string{"/status/404?q=1\nAccept: text/x", "/status/503", "/status/500", "/status/201", "HEAD /status/404"},
			inside: "proxy_intercept_errors on; error_page 404 = @e404; error_page 503 = @e503;", server: sameErrors("404", "web") + sameErrors("503", "web")},
		{with: only("custom-http-errors", "404", "default-backend", "errors", "disable-proxy-intercept-errors", "true"), requests: []string{"/status/404"}},
		{with: only("default-backend", "errors", "service", "empty"), inside: sameErrorFields("503", "empty"), pass: "http://ERRORS"},
		{with: only("enable-cors", "true", "cors-allow-origin", "https://*.a.test, https://b.test:8443", "cors-allow-credentials", "false", "cors-allow-methods", "GET, PUT", "cors-allow-headers", "X-A", "cors-max-age", "7"),
			http: `map $http_origin $origin_N { "~*^https://[a-z0-9-]+\.a\.test$" $http_origin; "~*^https://b\.test:8443$" $http_origin; }
				map $origin_N $ok_N { default "GET, PUT"; "" ""; } map $origin_N $age_N { default 7; "" ""; } map $origin_N $a_N { default X-A; "" ""; }
				map "$request_method $ok_N" $answer_N { "OPTIONS GET, PUT" 204; }`,
			inside: "add_header Access-Control-Allow-Origin $origin_N always; add_header Access-Control-Allow-Headers $a_N always;" + corsFields + " if ($answer_N) { return 204; }", requests: origins},
		{with: only("enable-cors", "true", "cors-allow-methods", "GET", "cors-allow-headers", "X-A", "cors-expose-headers", "X-B, X-C"),
			inside: "add_header Access-Control-Allow-Origin * always; add_header Access-Control-Allow-Credentials true always; add_header Access-Control-Allow-Methods GET always;" +
				` add_header Access-Control-Allow-Headers X-A always; add_header Access-Control-Expose-Headers "X-B, X-C" always; add_header Access-Control-Max-Age 1728000 always; if ($request_method = OPTIONS) { return 204; }`,
			requests: origins},
	}
}

// sameGuards are options about who may pass.
func sameGuards(only func(...string) map[string]string) []sameCase {
	const right, wrong = "\nAuthorization: Basic YW5uOnRlc3Q=", "\nAuthorization: Basic YW5uOndyb25n"
	logins := []string{"/x" + right, "/x" + wrong, "/x\nAuthorization: Bearer abc", "POST /x" + right + "\n\nbody5", "/x\nAuthorization: basic  YW5uOnRlc3Q="}
	const basic = `auth_basic "Staff"; auth_basic_user_file USERS; proxy_set_header Authorization "";`
	asked := []string{"/x?y=z\nCookie: say=yes", "/x\nCookie: say=no", "/x\nCookie: say=yes\nX-User: root", "POST /x\nCookie: say=yes\n\nbody5"}
	return []sameCase{
		{with: only("whitelist-source-range", "127.0.0.0/8"), inside: "allow 127.0.0.0/8; deny all;"},
		{with: only("whitelist-source-range", "10.0.0.0/8"), inside: "allow 10.0.0.0/8; deny all;"},
		{with: only("whitelist-source-range", "10.0.0.0/8, ::1,127.0.0.1/32"), inside: "allow 10.0.0.0/8; allow ::1; allow 127.0.0.1/32; deny all;"},
		{with: only("denylist-source-range", "127.0.0.1"), inside: "deny 127.0.0.1;"},
		hiding(`location /adm { deny all; } location ~ \.git { deny all; } location = /x { return 404; } location ~* ^/wp-.*\.php$ { deny all; return 410; }`),
		{with: only("denied-paths", "/adm\n~ \\.git\n~* ^/wp-.*\\.php$ 404"), server: `location /adm { deny all; } location ~ \.git { deny all; } location ~* ^/wp-.*\.php$ { deny all; return 404; }`,
			requests: []string{"/x", "/admin", "/Adm", "/x/.git/config", "/WP-login.php", "POST /wp-a.PHP?x\n\nbody5", "/x%2Fadm", "/%61dm", "//adm", "/x/../adm", "/adm?x=y"}},
		{with: only("denied-requests", "$request_method !~ ^(GET|POST)$ 405\n$http_user_agent ~* \"bad bot|^$\"\n$arg_a = b 410\n$http_x_key != secret 401\n$request_uri ~ \\.php 404"),
			inside: `if ($request_method !~ ^(GET|POST)$) { return 405; } if ($http_user_agent ~* "bad bot|^$") { return 403; } if ($arg_a = b) { return 410; } if ($http_x_key != secret) { return 401; } if ($request_uri ~ \.php) { return 404; }`,
			requests: []string{"/x", "/x\nUser-Agent: me", "/x\nUser-Agent: me\nX-Key: secret", "/x\nUser-Agent: me\nX-Key: Secret", "/x?a=b&x\nUser-Agent: me\nX-Key: secret", "/x?aa=b&a=bb\nUser-Agent: me\nX-Key: secret",
				"/x\nUser-Agent: A BAD BOT\nX-Key: secret", "PUT /x?a=b", "POST /x.php\nUser-Agent: me\nX-Key: secret\n\nbody5", "HEAD /x"}},
		ofSnippet(`location = /robots.txt { default_type text/plain; return 200 "User-agent: *\nDisallow: /\n"; } location = /x { default_type application/json; return 201 '{"a":1}'; access_log off; }`),
		ofSnippet(`add_header X-Seen yes always; if ($request_method = PUT) { return 405; } if ($request_method = OPTIONS) { return 204; } if ($http_referer) { return 203 "short and stout"; }`),
		{with: only("rewritten-paths", "^/kibana(/|$)(.*) /$2\n^/a/(.*)$ /b/$1?c=d\n\"^/x y\" /z?"), inside: `rewrite ^/kibana(/|$)(.*) /$2 break; rewrite ^/a/(.*)$ /b/$1?c=d break; rewrite "^/x y" /z? break;`,
			requests: []string{"/kibana", "/kibana/a%20b?q=1", "/kibanas", "/a/x?y=z", "/a/x", "/x%20y/1?a=b", "//kibana//x", "/b"}},
		{with: only("redirected-requests", "$uri ~ ^(/docs)$ $1/$is_args$args 301\n$uri ~* ^/old/(.*)/(\\d+)$ https://new.test/$2/$1?from=old\n$http_x_forwarded_proto = http https://$host$request_uri 308\n$arg_to ~ ^(.+)$ https://new.test/$1"),
			inside:   `absolute_redirect off; rewrite ^(/docs)$ $1/ permanent; rewrite (?i)^/old/(.*)/(\d+)$ https://new.test/$2/$1?from=old? redirect; if ($http_x_forwarded_proto = http) { return 308 https://$host$request_uri; } if ($arg_to ~ ^(.+)$) { return 302 https://new.test/$1; }`,
			requests: []string{"/docs", "/docs?a=b&c", "/docs/", "/x/docs", "//docs", "/%64ocs", "/OLD/a%20b/c/12", "/old/a/b", "/old//1?x=y", "/old/a%2Fb/1", "/x?y=z\nX-Forwarded-Proto: http", "/x\nX-Forwarded-Proto: https", "/x?to=a", "/x?to=a/b;c", "POST /docs\n\nbody5"}},
		ofSnippet(`if ($http_x_forwarded_for = 9.9.9.9) { return 410; } if ($http_x_forwarded_for) { return 411; } if ($http_x_forwarded_host = evil.test) { return 412; }`),
		ofSnippet(`if ($http_x_forwarded_host !~ ^(evil\.test)?$) { return 410; } add_header X-Chain "$http_x_forwarded_for by $http_x_forwarded_host" always; proxy_set_header X-Chain $http_x_forwarded_for;`),
		{with: only("denied-requests", "$http_x_forwarded_for = 9.9.9.9 410\n$http_x_forwarded_host = other.test"), inside: `if ($http_x_forwarded_for = 9.9.9.9) { return 410; } if ($http_x_forwarded_host = other.test) { return 403; }`,
			requests: []string{"/x\nX-Forwarded-For: 8.8.8.8, 9.9.9.9", "/x\nX-Forwarded-Host: other.test", "/x\nX-Original-Forwarded-For: 9.9.9.9"}},
		{with: only("denylist-source-range", "10.0.0.0/8,127.0.0.1", "whitelist-source-range", "127.0.0.0/8"), inside: "deny 10.0.0.0/8; deny 127.0.0.1; allow 127.0.0.0/8; deny all;"},
		{with: only("auth-type", "basic", "auth-secret", "users", "auth-realm", "Staff"), inside: basic, requests: logins},
		{with: only("auth-type", "basic", "auth-secret", "users", "auth-realm", "Staff", "whitelist-source-range", "10.0.0.0/8"), inside: basic + "allow 10.0.0.0/8; deny all;", requests: logins},
		{with: only("auth-type", "basic", "auth-secret", "users", "auth-realm", "Staff", "satisfy", "any", "whitelist-source-range", "10.0.0.0/8"),
			inside: basic + "satisfy any; allow 10.0.0.0/8; deny all;", requests: logins},
		{with: only("auth-type", "basic", "auth-secret", "users", "auth-realm", "Staff", "satisfy", "any", "whitelist-source-range", "127.0.0.0/8"),
			inside: basic + "satisfy any; allow 127.0.0.0/8; deny all;", requests: logins},
		{with: only("auth-type", "basic", "auth-secret", "users", "auth-realm", "Staff", "configuration-snippet", "satisfy any; allow 10.0.0.0/8; deny all;"),
			inside: basic + "satisfy any; allow 10.0.0.0/8; deny all;", requests: logins},
		{with: only("auth-type", "basic", "auth-secret", "users", "auth-realm", "Staff", "configuration-snippet", "satisfy any; allow 127.0.0.0/8; deny all;"),
			inside: basic + "satisfy any; allow 127.0.0.0/8; deny all;", requests: logins},
		{with: only("auth-type", "basic", "auth-secret", "users", "auth-realm", "Staff", "configuration-snippet", "satisfy all; allow 127.0.0.0/8; deny all;"),
			inside: basic + "satisfy all; allow 127.0.0.0/8; deny all;", requests: logins},
		{with: only("auth-url", "http://gate.default.svc.cluster.local/check", "auth-response-headers", "X-User"), requests: asked,
			server: `location = /_ask { internal; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Original-URL $scheme://$http_host$request_uri; proxy_pass http://GATE/check; }`,
			inside: "auth_request /_ask; auth_request_set $user_N $upstream_http_x_user; auth_request_set $cookie_to_N $upstream_http_set_cookie; add_header Set-Cookie $cookie_to_N; proxy_set_header X-User $user_N;"},
	}
}

// sameErrors is where a response with a status is replaced.
func sameErrors(status, service string) string {
	return "location @e" + status + " { internal; rewrite (.*) / break; " + sameFields + "proxy_set_header Host $http_host; " + sameErrorFields(status, service) + " proxy_pass http://ERRORS; }\n"
}

// sameErrorFields tell the default backend what it stands in for.
func sameErrorFields(status, service string) string {
	return "proxy_set_header X-Code " + status + "; proxy_set_header X-Format $http_accept; proxy_set_header X-Original-URI $request_uri; proxy_set_header X-Namespace default;" +
		" proxy_set_header X-Ingress-Name iN; proxy_set_header X-Service-Name " + service + "; proxy_set_header X-Service-Port 80;"
}

// sameFields are what ingress-nginx sends with every request.
const sameFields = `proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header X-Request-ID $name; proxy_set_header X-Real-IP $remote_addr;
	proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Port 80; proxy_set_header X-Forwarded-Proto $scheme;
	proxy_set_header X-Forwarded-Scheme $scheme; proxy_set_header X-Scheme $scheme; proxy_set_header X-Original-Forwarded-For $http_x_forwarded_for; proxy_set_header X-Original-Forwarded-Host $http_x_forwarded_host; proxy_set_header Proxy "";
	`

func sameRequests() []string {
	return []string{
		"/", "/?a=b", "/x", "/X", "/api", "/api/", "/api/v1?q=1", "/api/a%20b", "/API/v2", "/a/bb/c", "/az", "/abcz/z", "/abc/x", "/sub", "/sub/", "/sub/x",
		"POST /\n\nbody5", "POST /api/x\n\nb", "HEAD /x", "OPTIONS /", "DELETE /api/1",
		"/x\nX-Forwarded-For: 9.9.9.9\nX-Forwarded-Host: evil.test\nX-Forwarded-Proto: https\nX-Forwarded-Port: 1\nX-Real-IP: 9.9.9.9\nX-Scheme: https\nX-Request-ID: mine",
		"/x\nProxy: evil\nX-Original-Forwarded-For: 8.8.8.8\nAccept: a/b\nAccept-Encoding: br\nReferer: http://r.test/\nX-Own: 1\nCookie: c=d",
	}
}

// sameObjects are the Ingresses of a case.
func sameObjects(i int, c sameCase) []*networkingv1.Ingress {
	list := []*networkingv1.Ingress{annotated(fmt.Sprint("i", i), hostOfCase(i), c.with)}
	if c.canary != nil {
		second := annotated(fmt.Sprint("canary", i), hostOfCase(i), c.canary)
		second.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "new"
		list = append(list, second)
	}
	return list
}

// sameText puts what a case means by capital letters into its directives.
func sameText(i int, text string, places *strings.Replacer) string {
	text = strings.NewReplacer("HOST", hostOfCase(i), "_N", fmt.Sprint("_", i), " iN;", fmt.Sprintf(" i%d;", i)).Replace(text)
	return places.Replace(text)
}
