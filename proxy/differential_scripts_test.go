package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quayside.io/proxy/snippet"
)

// scripted is a case whose snippets are the directives. The host's stand in the server.
func scripted(place, host string, requests ...string) sameCase {
	c := sameCase{with: map[string]string{}, requests: requests, inside: "absolute_redirect off; default_type text/plain; " + place, server: "absolute_redirect off; default_type text/plain; " + host}
	if place != "" {
		c.with["configuration-snippet"] = place
	}
	if host != "" {
		c.with["server-snippet"] = host
	}
	return c
}

// rewriting is c with a rewrite-target, behind whose path nginx rewrites after the snippet.
func (c sameCase) rewriting(path, to string) sameCase {
	c.with["path"], c.with["use-regex"], c.with["rewrite-target"] = path, "true", to
	c.match, c.inside = `~* "^`+path+`"`, c.inside+` rewrite "(?i)`+path+`" `+to+` break;`
	return c
}

// TestScriptsSameAsNginx gives snippets to nginx for which options are not enough.
func TestScriptsSameAsNginx(t *testing.T) {
	compareWithNginx(t, scriptCases())
}

func scriptCases() []sameCase {
	const cors = `if ($http_origin ~* "^https?://((?:www\.exact\.test)|(?:.*\.a\.test))$") { set $cors "true"; }
		if ($request_method = 'OPTIONS') { set $cors "${cors}options"; }
		if ($cors = "true") { add_header 'Access-Control-Allow-Origin' "$http_origin" always; add_header 'Access-Control-Allow-Methods' 'GET, PUT' always; }
		if ($cors = "trueoptions") { add_header 'Access-Control-Allow-Origin' "$http_origin"; add_header 'Access-Control-Max-Age' 1728000; add_header 'Content-Type' 'text/plain charset=UTF-8'; add_header 'Content-Length' 0; return 204; }`
	origins := []string{"/x\nOrigin: https://x.a.test", "/x\nOrigin: https://b.test", "OPTIONS /x\nOrigin: https://www.exact.test", "OPTIONS /x\nOrigin: https://evil.test", "/status/404\nOrigin: https://x.a.test"}
	return []sameCase{
		scripted(`if ($host ~ ^(.*\.?)case-([0-9]*)\.te(.*)$ ) { set $before $1; set $number $2; set $other ${before}new-$number.te$3; rewrite ^/go/(.*)$ https://$other/$1; } add_header X-Other "$other $1";`, "", "/go/x?a=b", "/go/", "/x"),
		scripted(`proxy_set_header X-Forwarded-Prefix "/custom"; proxy_set_header X-Own $request_method; set $a "$arg_a"; add_header X-A "$a" always;`, "", "/x?a=b"),
		scripted(`if ($arg_a) { set $of "<$1>"; } add_header X-Of "$of"; rewrite ^/abcz/z$ /az?a=b last;`, "", "/abcz/z?a=b").rewriting("/a(.*)", "/b$1"),
		scripted(`set $a "<b>"; if ($a ~ ^(.)(.*)$) { set $c "$1$2"; set $d '"{|}^\\'; } if ($d ~ (.*)) { set $d "$1"; } proxy_set_header X-C "$c$d";`, "", "/a%20b", "/a+b"),
		scripted(`set $made ab; if ($made ~ ^(.)) { set $made c; }`, `add_header X-B "<$1>" always;`, "/a/b").rewriting("/(.*)", "/b/$1"),
		scripted("", `add_header X-B "<$1>" always;`, "/a/b").rewriting("/(.*)", "/b/$1"),
		scripted(`add_header X-Told "$upstream_status $upstream_addr $upstream_http_x_user $status" always; add_header X-Cache $upstream_cache_status; more_set_headers "X-More: $upstream_http_x_none.";`, `location = /x { add_header X-Told "$upstream_status.$status" always; return 404; }`, "/status/404"),
		scripted("", `location = /x { if ($scheme = http) { access_log off; return 301 $scheme://$host:8080/$arg_a; } access_log off; return 200 x; } location = /y { return 302 https://$host:8443/in; } access_log off;`, "/y"),
		scripted(`rewrite ^(/sub)$ $1/ redirect;`, "").rewriting("/sub(/|$)(.*)", "/$2"),
		scripted(`set $rest $2; proxy_set_header X-Prefix /a$1; add_header X-Rest "$2-$rest"; if ($arg_a = b) { add_header X-A "$1"; }`, "", "/api/v1?a=b").rewriting("/api(/|$)(.*)", "/$2"),
		scripted(`rewrite ^/api/(.*)$ /$1 break; set $who $host; proxy_set_header X-Who $who;`, `rewrite ^/abcz /api/x;`).rewriting("/a(.*)", "/b$1"),
		scripted(`proxy_set_header X-Group "<$1>"; set $of "$1"; add_header X-Of $of;`, `set $before "<$1>"; if ($uri ~ ^/(.)) { set $x y; } location = /abcz/z { add_header X-B "<$1>" always; return 204; } location = /az { add_header X-B "$before" always; return 200 a; }`).rewriting("/a(.*)", "/b$1"),
		scripted("", `location = /az { add_header X-B "<$1>" always; return 200 a; } set $before "<$1>"; location = /a/bb/c { add_header X-B $before; return 200 b; }`).rewriting("/a(.*)", "/b$1"),
		scripted(`rewrite ^/abc/(.*)$ /api/$1 last; rewrite ^/az$ /out last;`, "").rewriting("/a(.*)", "/b$1"),
		scripted(cors, "", origins...),
		scripted(`add_header X-Method $request_method; set $my_var "hello"; add_header X-My-Var $my_var; set $combined "$request_method-$request_uri"; add_header X-Combined $combined;
			proxy_set_header X-Backend-Method $request_method; proxy_set_header X-Backend-Var "$combined,$my_var"; if ($request_method = POST) { return 405 "Method Not Allowed"; }`, ""),
		scripted(`set $my_host $http_host; if ($http_cookie ~ "c=(.)") { set $my_host "www-$1.test"; } proxy_set_header Host $my_host;`, "", "/x\nCookie: c=z"),
		scripted(`if ($request_uri ~ "^/a(.*)") { add_header X-Captured "<$1>"; } if ($http_x_own !~* "^2") { add_header X-Not yes; } add_header X-Always "$1" always;`, "", "/a/b/c?d", "/status/404"),
		scripted(`set $flag ""; if ($arg_a) { set $flag A; } if ($request_method = POST) { set $flag "${flag}B"; } if ($flag = AB) { return 403; } if ($flag = A) { rewrite ^/(.*)$ /flagged/$1? break; } if ($flag) { add_header X-Flag $flag; }`, "",
			"/x?a=1", "/x?a=0", "POST /x?a=1\n\nbody5", "POST /x\n\nbody5"),
		scripted(`rewrite ^/api/(?<rest>.*)$ /v2/$rest break; add_header X-Rest "$rest"; proxy_set_header X-Rest $rest;`, ""),
		scripted(`rewrite ^/abc/(.*)$ /moved/$1 last; rewrite ^/moved/(.*)$ /there/$1?p=$1 last; rewrite ^/there /end; if ($uri = /end) { set $ended yes; } add_header X-Ended "$ended-$request_uri"; rewrite ^/sub$ /sub/x? last; rewrite ^/loop(.*)$ /loop/$1 last;`, "",
			"/abc/d?e=f", "/there/x", "/abc/a%20b", "/loop/a"),
		scripted(`if ($http_x_own) { rewrite ^/x$ /own break; } rewrite ^/own /not break; rewrite ^/sub /away/in? permanent; rewrite ^/abc https://new.test/$host$uri redirect; break; return 410;`, ""),
		scripted(`add_header X-A outer; add_header X-B outer always; if ($arg_a) { add_header X-A inner; } if ($arg_q) { expires max; } if ($request_method = DELETE) { set $x y; }`, "", "/?a=1", "/?q=1", "/?a=1&q=1", "/status/404?a=1"),
		scripted(`expires epoch; add_header Set-Cookie "mine=1; Path=/"; add_header Vary Origin; add_header Link "</a.css>; rel=preload" always;`, "", "/status/404"),
		scripted("", `location = /exact { return 200 "exact-match"; } location ~ ^/api/v[0-9]+ { return 200 "versioned"; } location /sub { add_header X-Loc-Add "add-value"; return 200 "with-headers"; }
			location /loc-return { return 403 "Forbidden"; } location /abc { add_header X-Level "location" always; return 404 "inherited"; } location ~* ^/A/(?<what>.*)/C$ { add_header X-What $what; return 302 /found/$what?$1; } add_header X-Level "root";`,
			"/exact", "/exact/x", "/loc-return", "/loc-returned?x", "//exact", "/%65xact", "/A/x/c"),
		scripted("", `location /sub { expires max; return 200 "ok"; } location ^~ /api { if ($request_method = POST) { return 405 no; } set $a $uri; add_header X-A "$a,$request_method"; return 200 yes; } location ~ /api/v2 { return 200 never; } location ~ /x$ { return 200 x; }`),
		scripted(`set $y 1; add_header X-Place "$uri$y"; if ($request_method = PUT) { return 405; }`, `rewrite ^/abc/(.*)$ /moved/$1 last; rewrite ^/a/(.*)$ /b/$1; rewrite ^/b/(.*)$ /c/$1 break; rewrite ^/c/ /d; set $x $uri; if ($http_x_own) { return 307 /own$x; }
			location /moved/x { return 200 moved; }`, "/abc/x", "/a/z?q", "PUT /a/z\n\nbody5"),
		scripted(`if ($host ~ ^(?<label>[a-z]+)-(?<rest>.*)$) { return 302 https://$rest/$label$request_uri; }`, ""),
		scripted(`proxy_set_header X-Tenant $tenant; add_header X-Tenant "$tenant-$1"; if ($tenant = abc) { return 402 no; }`, `set $tenant ''; if ($request_uri ~* "^/([^/]+)/(.*)$") { set $tenant $1; }`, "/ten/x", "/ABC/x"),
		scripted("", `set $agentflag 0; if ($http_user_agent ~* "(Mobile)" ){ set $agentflag 1; } if ( $agentflag = 1 ) { return 301 http://m.shop.test; }`, "/x\nUser-Agent: a mobile b"),
		scripted(`if ($request_uri ~* \.(js|css|gif|jpe?g|png)) { expires max; add_header Cache-Control "public"; }`, "", "/status/404"),
		scripted(`rewrite ^/$ /targets last; set $dest $http_destination; if ($http_destination ~ "^https?://[^/]+(?<path>/.*)$") { set $dest $path; } proxy_set_header Destination $dest;`, "", "/x\nDestination: https://a.test/b/c", "/x\nDestination: b"),
		scripted("", `location ~ ^/(v1|api)/[^/]+/?[^/]+/blobs/ { client_max_body_size 10G; if ($request_method ~* (POST|PUT|DELETE|PATCH|HEAD) ) { rewrite ^/(.*)$ /nexus/repository/docker-private/$1 last; } rewrite ^/(.*)$ /nexus/repository/docker-group/$1 last; }
			location ~ ^/(v1|api)/ { client_max_body_size 10G; if ($request_method ~* (POST|PUT|DELETE|PATCH) ) { rewrite ^/(.*)$ /nexus/repository/docker-private/$1 last; } rewrite ^/(.*)$ /nexus/repository/docker-group/$1 last; } location /sub { rewrite ^/sub(.*)$ /x$1; rewrite ^ /y$uri; }`,
			"/v1/a/b/blobs/c?d", "PUT /v1/a/b/blobs/c\n\nbody5", "HEAD /v1/a/b/blobs/c", "HEAD /v1/a", "/api/v2/a%20b"),
		scripted(`limit_except GET OPTIONS { deny all; } add_header X-A b;`, "", "PUT /x\n\nbody5", "/x"),
		scripted(`limit_except POST { allow 127.0.0.0/8; deny all; } break;`, "", "PUT /x\n\nbody5", "HEAD /x"),
		scripted(`limit_except POST { allow 10.0.0.0/8; allow ::1; deny all; } error_page 403 =409 https://new.test/;`, "", "PUT /x\n\nbody5", "HEAD /x"),
		scripted("", `location = /x { if ($arg_a) { break; } return 403; } location /api { if ($request_method = POST) { rewrite ^/api/(.*)$ /sub/$1 last; } if ($arg_q) { break; } if ($http_x_own) { rewrite ^ /sub break; } return 200 api; }`, "/api/x\nX-Own: 1", "/x?a=1", "/x?a=b&c", "/api/x?q=1"),
		scripted(`set $target www.shop.test; if ($arg_a) { return 301 https://$target$request_uri; } set $back /in$uri; if ($arg_q) { return 307 $back?x; }`, "", "/x?a=1"),
		scripted(`sub_filter_types text/plain; sub_filter web "<b>"; sub_filter GET "get it"; sub_filter '"' "'";`, "", "/status/404"),
		scripted(`sub_filter_types *; sub_filter_once off; sub_filter abc <1>; sub_filter ab <2>; sub_filter bc <3>; sub_filter USER-agent <4>;`, "", "/abcabbc/ABcbcb", "/x?ab&a&bcc"),
		scripted(`sub_filter web <b>;`, "", "/x"), // of pages alone
		scripted(`set $a b; more_set_input_headers -r "X-Own: $a" "Referer: r"; more_set_input_headers "X-Set: $a$uri"; more_clear_input_headers Cookie; more_set_headers "X-A: first";`, ""),
		scripted(`set $a b; if ($http_x_own = $arg_own) { return 409; } if ($a = $arg_b) { return 406; }`, "", "/x?own=1\nX-Own: 1", "/?b=b", "/?own=&b=c"),
	}
}

// TestDrawnScriptsSameAsNginx draws scripts and gives those that are obeyed to nginx, too.
func TestDrawnScriptsSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := scriptDrawer{parts}
	var cases []sameCase
	for len(cases) < count {
		place, host := draw.place(), ""
		if draw.IntN(3) == 0 {
			host = draw.host()
		}
		_, err := snippet.Script(place, false, &snippet.Known{})
		if err == nil && host != "" {
			_, err = snippet.Script(host, true, &snippet.Known{})
		}
		if err != nil {
			t.Logf("%s %s: %v", place, host, err)
			continue
		}
		c := scripted(place, host, "/docs?a=b", "/new/x?a=0", "/old/a%20b/c?x=1&a=1", "/x?a=b\nCookie: c=1", "POST /old/x\nX-Own: /x\n\nbody5", "//docs", "/status/404?a=b", "/status/302", "PUT /x?c=2&a=0")
		if draw.IntN(4) == 0 && !strings.Contains(place+host, "$uri\"") { // which is that of before here
			c = c.rewriting("/(.*)", "/in/$1")
		}
		cases = append(cases, c)
	}
	compareWithNginx(t, cases)
}

// scriptDrawer draws scripts.
type scriptDrawer struct{ snippetDrawer }

// place draws what stands in the place of an Ingress.
func (d scriptDrawer) place() string {
	lines := []string{`set $made ""; set $safe "";`}
	for range 1 + d.IntN(6) {
		lines = append(lines, d.step("$uri"))
	}
	for range d.IntN(3) {
		lines = append(lines, d.field())
	}
	if d.IntN(2) == 0 {
		lines = append(lines, "proxy_set_header X-Mine "+d.value()+";")
	}
	d.Shuffle(len(lines)-1, func(i, j int) { lines[1+i], lines[1+j] = lines[1+j], lines[1+i] })
	return joined(lines)
}

// host draws what stands in that of a host.
func (d scriptDrawer) host() string {
	lines := []string{`set $made ""; set $safe "";`}
	for range 1 + d.IntN(3) {
		step := d.step("$of_host")
		if strings.Contains(step, "add_header") || strings.Contains(step, "more_") || strings.Contains(step, "expires") {
			continue // which nginx takes in no if of a host
		}
		lines = append(lines, step)
	}
	for range d.IntN(3) {
		lines = append(lines, d.field())
	}
	for _, i := range d.Perm(6)[:d.IntN(3)] {
		at := []string{"= /x", "/new", "~ ^/old/(.*)$", "~* /DOCS$", "^~ /status", "/api"}[i]
		lines = append(lines, fmt.Sprintf("location %s { %s %s }", at, d.of("", d.field(), "set $made y;"), d.of("", "", "if ("+d.condition()+") { "+d.of(d.field(), "set $made z;", "return 405;")+" }")+d.of("return 200 ok;", "return 404 none;", "return 302 /there$request_uri;", "return 204;")))
	}
	return strings.NewReplacer("$made", "$of_host", "$safe", "$safe_host").Replace(joined(lines))
}

// joined joins directives, of which nginx takes one expires.
func joined(lines []string) string {
	expires := false
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		again := expires && strings.HasPrefix(line, "expires")
		expires = expires || strings.HasPrefix(line, "expires")
		return again
	}), "\n")
}

func (d scriptDrawer) value() string {
	return `"` + d.of("v", "$made", "$made-$request_method", "<$1>", "$arg_a", "$uri", "$host$request_uri", "$cookie_c.$http_x_own") + `"`
}

func (d scriptDrawer) condition() string {
	return d.of("$made", "$made = ab", "$made != v", "$made ~ ^(.)", "$arg_a", "$arg_a = $made", "$request_method = POST", "$uri ~ ^/(old|new)/(.*)$", `$request_uri ~* "\?(.*)$"`, "$http_x_own", "$http_x_own !~ ^/", "$cookie_c = 1", "$host ~ ^case-(.)")
}

func (d scriptDrawer) step(string) string {
	switch d.IntN(5) {
	case 0:
		return "set $made " + d.value() + ";"
	case 1, 2:
		var block []string
		for range 1 + d.IntN(2) {
			block = append(block, d.of("set $made "+d.value()+";", d.field(), d.field(), d.move(), "break;", "return 405;", "return 302 /to$request_uri;", `return 200 "fine";`))
		}
		return "if (" + d.condition() + ") { " + joined(block) + " }"
	case 3:
		return d.move()
	}
	return d.of("break;", "set $made ab;", "set $safe b;", "set $safe /c$safe;", "set $safe $arg_a;", "set $made \"a$made\";")
}

func (d scriptDrawer) move() string {
	return "rewrite " + d.of("^/x$", "^/old/(.*)$", "^/new/(.*)$", "^/(docs)$", "/a([a-z])", "^/status/404$") + " " + d.of("/new/$1", "/x", "/old/x?made=$safe", "/end/$1?", "/docs", "/in$safe/z") + d.of("", " last", " break", " permanent", " redirect") + ";"
}

func (d scriptDrawer) field() string {
	return d.of("add_header X-A "+d.value()+";", "add_header X-B "+d.value()+" always;", `more_set_headers "X-A: m`+d.of("", "$made")+`";`, `more_set_headers "X-User: me";`, "more_clear_headers X-U*;", `more_set_headers -s "404 405" "X-C: s";`, "expires epoch;", "expires max;", "expires off;", `more_set_headers "X-A:";`, "add_header Vary Origin;")
}
