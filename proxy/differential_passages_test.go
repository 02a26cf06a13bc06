package proxy_test

import (
	"strings"
	"testing"

	"quayside.io/proxy/snippet"
)

// passing is a case with locations that have a Service asked. FIELDS in them are what every route
// sends here, which nginx has to be told.
func passing(place, host string, requests ...string) sameCase {
	c := scripted(place, host, requests...)
	c.with["server-snippet"] = strings.ReplaceAll(host, "FIELDS", "")
	addresses := strings.NewReplacer("FIELDS", sameFields, "new.default.svc.cluster.local:80", "NEW", "new.default.svc", "NEW", "errors.default.svc", "ERRORS")
	c.server, c.inside = addresses.Replace(c.server), addresses.Replace(c.inside)
	return c
}

// TestPassagesSameAsNginx gives snippets to nginx with locations that clients ask for and that
// have Services asked.
func TestPassagesSameAsNginx(t *testing.T) {
	requests := []string{"/x?a=b", "/api", "/api?a=b", "/api/", "/api/x?a=b&c", "/apis", "/API/x", "POST /api/x/y\nX-Own: 1\nAuthorization: Basic YTpi\n\nbody5", "/api/status/404", "/api/a%20b/c%2Fd?e", "/api/%61%2Bb", "/api//x", "/x/../api/y", "/api?", "/old/api/z", "/x.js?v", "/api/x.js", "HEAD /api/x", "/api/deny", "/api/é\"'"}
	const own = `proxy_set_header Host $http_host; FIELDS `
	var cases []sameCase
	for _, c := range [][2]string{
		{``, `location /api { proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `location /api/ { proxy_pass http://new.default.svc.cluster.local:80; ` + own + `}`},
		{``, `location /api/ { proxy_pass http://new.default.svc/; ` + own + `}`},
		{``, `location /api { proxy_pass http://new.default.svc/v1; ` + own + `}`},
		{``, `location /api/ { proxy_pass http://new.default.svc/v1/; ` + own + `}`},
		{``, `location = /api { proxy_pass http://new.default.svc/status/402; ` + own + `}`},
		{``, `location ^~ /api { proxy_pass http://new.default.svc$request_uri; ` + own + `} location ~ \.js$ { return 200 js; }`},
		{``, `location /api { proxy_pass http://new.default.svc; ` + own + `} location ~ \.js$ { proxy_pass http://errors.default.svc; ` + own + `}`},
		{``, `location ~ ^/api/(?<rest>.*)$ { proxy_pass http://new.default.svc; ` + own + ` proxy_set_header X-Rest "$rest $1"; add_header X-Rest $1 always; }`},
		{``, `location ~* ^/api { set $to http://new.default.svc; proxy_pass $to; ` + own + `}`},
		{``, `location /api { set $to "http://new.default.svc"; proxy_pass $to/whole; ` + own + `}`},
		{``, `location /api { set $to "a b"; proxy_pass http://new.default.svc; ` + own + `proxy_set_header X-To $to; }`},
		{``, `location /api/ { rewrite ^/api/(.*)$ /$1 break; proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `location /api { rewrite ^/api/x https://new.test$uri permanent; proxy_pass http://new.default.svc/v3; ` + own + `}`},
		{``, `location /api/ { rewrite ^/api/x /moved break; proxy_pass http://new.default.svc/v4/; ` + own + `proxy_set_header X-Args "$args $1"; add_header X-Args "$args" always; }`},
		{``, `rewrite ^/old/(.*)$ /$1 break; location /api/ { proxy_pass http://new.default.svc/v5/; ` + own + `proxy_set_header X-Args "$args $1"; } location = /x { set $to http://new.default.svc; proxy_pass $to/v6; ` + own + `add_header X-Args "$args" always; }`},
		{``, `rewrite ^/old/(.*)$ /$1; location /api/ { if ($arg_a) { break; } rewrite ^/api/x /moved break; proxy_pass http://new.default.svc$request_uri; ` + own + `}`},
		{``, `location /api/ { if ($request_method = POST) { return 405; } if ($arg_a) { add_header X-A $arg_a; } proxy_pass http://new.default.svc; ` + own + `add_header X-Api yes always; }`},
		{``, `location /api/ { if ($arg_a = b) { return 302 https://new.test$request_uri; } if ($arg_a) { return 402; } proxy_pass http://new.default.svc/v2/; ` + own + `proxy_hide_header X-User; client_max_body_size 3; }`},
		{`add_header X-Place $seen;`, `set $seen "$arg_a of host"; add_header X-Host $seen always; location /api { proxy_pass http://new.default.svc; ` + own + `}`},
		{`return 402;`, `set $seen "$arg_a of host"; add_header X-Host $seen always; location /api { set $own "$seen and own"; proxy_pass http://new.default.svc; ` + own + `add_header X-Own $own; proxy_set_header X-Seen $own; }`},
		{`rewrite ^/x /api/moved last;`, `location /api { proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `rewrite ^/old(/.*)$ $1; location /api/ { proxy_pass http://new.default.svc/v1/; ` + own + `}`},
		{``, `rewrite ^/old(/.*)$ $1 last; location /api/ { proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `location /api { internal; proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `location /api/deny { deny all; } location /api { allow 10.0.0.0/8; deny all; proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `location /api { allow 127.0.0.0/8; deny all; proxy_pass http://new.default.svc; ` + own + `}`},
		{`error_page 402 /api/pages; if ($arg_a) { return 402; }`, `location /api { proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `error_page 404 /api/pages; location /api { proxy_intercept_errors on; proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `location /api { error_page 404 402 = @says; proxy_intercept_errors on; proxy_pass http://new.default.svc; ` + own + `if ($arg_a) { return 402; } } location @says { return 418 no; }`},
		{`error_page 402 404 = @other; proxy_intercept_errors on; if ($arg_a) { return 402; }`, `location @other { proxy_pass http://new.default.svc; ` + own + `add_header X-Other "$uri $args" always; } location /api { proxy_intercept_errors on; error_page 404 =200 @other; proxy_pass http://errors.default.svc; ` + own + `}`},
		{`error_page 402 @other; if ($arg_a) { return 402; } proxy_set_header X-Own of-app; proxy_hide_header X-User;`, `set $seen "$arg_a"; location @other { set $to http://new.default.svc; proxy_pass $to/sorry; ` + own + `proxy_set_header X-Seen "$seen"; if ($seen = b) { return 418; } }`},
		{`error_page 402 /inner/page; if ($arg_a) { return 402; } rewrite ^/x /inner/moved last;`, `location /inner { internal; proxy_pass http://new.default.svc; ` + own + `add_header X-Inner yes always; }`},
		{`more_set_headers "X-A: m";`, `location ~ ^/old { rewrite ^/old(.*)$ /old$1/a last; proxy_pass http://new.default.svc; ` + own + `add_header X-Old yes always; } location /api/ { rewrite ^/api/x$ /api/x/1 last; rewrite ^/api/x/1$ /api/x/2 last; rewrite ^/api/x/2$ /api/x/3 last; rewrite ^/api/x/3$ /api/x/4 last; rewrite ^/api/x/4$ /api/x/5 last; rewrite ^/api/x/5$ /api/x/6 last; rewrite ^/api/x/6$ /api/x/7 last; proxy_pass http://new.default.svc; ` + own + `}`},
		{``, `location /api { rewrite ^/api/x(.*) /apis$1 last; rewrite ^/api/status /x last; proxy_pass http://new.default.svc; ` + own + `} location /apis { proxy_pass http://errors.default.svc; ` + own + `}`},
		{``, `set $seen "of $arg_a"; add_header X-Host $seen always; location /api { rewrite ^/api/(.*)$ /$1 last; proxy_pass http://new.default.svc; ` + own + `}`},
		{`error_page 404 =200 /page; proxy_intercept_errors on;`, `rewrite ^/old/api/z /status/404 break; location = /page { proxy_pass http://new.default.svc/in; ` + own + `}`},
		{``, `location /api { sub_filter new older; sub_filter_types *; proxy_pass http://new.default.svc; ` + own + `}`},
	} {
		cases = append(cases, passing(c[0], c[1], requests...))
	}
	// What is filled in nginx sends without escaping it.
	var plain []string
	for _, r := range requests {
		if !strings.ContainsAny(r, "%é") && !strings.Contains(r, "..") {
			plain = append(plain, strings.ReplaceAll(r, "/api", "/fill"))
		}
	}
	for _, c := range [][2]string{
		{``, `location /fill { proxy_pass http://new.default.svc/serve?of=; ` + own + `}`},
		{``, `location /fill/ { proxy_pass http://new.default.svc/serve?of=a%20b/; ` + own + `add_header X-Args "$args $uri" always; }`},
		{``, `location ~ ^/fill/(.*)$ { proxy_pass http://new.default.svc/v1/$1$is_args$args; ` + own + `}`},
		{``, `location ~* ^/(f[a-z]+)/(?<rest>.*)$ { proxy_pass http://new.default.svc/$rest?of=$1&$args; ` + own + `}`},
		{``, `location /fill/ { rewrite ^/fill/(.*) /$1 break; proxy_pass http://new.default.svc$uri$is_args$args; ` + own + `}`},
		{``, `location /fill { rewrite ^/fill/x(.*) /moved$1 break; proxy_pass http://new.default.svc/v2$uri?b=$arg_a; ` + own + `}`},
		{``, `location /fill { set $more "$request_method-$arg_a"; proxy_pass http://new.default.svc$request_uri$more; ` + own + `}`},
		{``, `set $seen "of-$arg_a"; location = /x { set $own $seen; proxy_pass http://new.default.svc/$own/$host; ` + own + `} location /fill { if ($arg_a ~ (.)) { break; } proxy_pass http://new.default.svc/of/$1; ` + own + `}`},
		{`error_page 402 = @other; if ($arg_a) { return 402; }`, `location @other { proxy_pass http://new.default.svc/other$request_uri?$uri$is_args$args; ` + own + `}`},
	} {
		cases = append(cases, passing(c[0], c[1], plain...))
	}
	if asked := compareWithNginx(t, cases); asked < 600 {
		t.Errorf("%d requests", asked)
	}
}

// TestDrawnPassagesSameAsNginx draws scripts beside locations that have Services asked, and gives
// those that are obeyed to nginx, too.
func TestDrawnPassagesSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := scriptDrawer{parts}
	requests := []string{"/docs?a=b", "/new/x?a=0", "/new", "/old/a%20b/c?x=1&a=1", "/old", "/x?a=b\nCookie: c=1", "/old/x\nX-Own: /x", "//docs", "/status/404?a=b", "/status/302", "PUT /x?c=2&a=0", "/new/status/404?a"}
	ofHost := strings.NewReplacer("$made", "$of_host", "$safe", "$safe_host")
	var cases []sameCase
	for len(cases) < count {
		place, host := draw.place(), draw.host()
		if draw.IntN(3) == 0 {
			place, host = place+"\n"+draw.page()+draw.of("", "proxy_intercept_errors on;"), host+"\nlocation @a { return 200 fine; }"
		}
		if draw.IntN(2) == 0 {
			place = draw.of(draw.detour()+"\n"+place, place+"\n"+draw.detour())
		}
		for _, i := range draw.Perm(6)[:1+draw.IntN(2)] {
			host += "\n" + ofHost.Replace(draw.passage([]string{"= /page", "/new/", "/old/", "~ ^/old/(.*)$", "~ /do(.)", "^~ /stat"}[i]))
		}
		var known snippet.Known
		snippet.Declare(place, &known)
		_, err := snippet.Script(strings.ReplaceAll(host, "FIELDS", ""), true, &known)
		if err == nil {
			_, err = snippet.Script(place, false, &known)
		}
		if err != nil {
			t.Logf("%s %s: %v", place, host, err)
			continue
		}
		cases = append(cases, passing(place, host, requests...))
	}
	compareWithNginx(t, cases)
}

// detour draws an if that has another asked.
func (d scriptDrawer) detour() string {
	to := "proxy_pass http://errors.default.svc" + d.of("", "", "$request_uri", "/in$request_uri", "/in/$arg_a?$args") + ";"
	block := []string{to, d.of("", d.field()), d.of("", "set $made "+d.value()+";", d.move(), "break;")}
	d.Shuffle(len(block), func(i, j int) { block[i], block[j] = block[j], block[i] })
	return "if (" + d.condition() + ") { " + joined(block) + " }"
}

// passage draws a location that has a Service asked.
func (d scriptDrawer) passage(at string) string {
	lines := []string{"proxy_set_header Host $http_host; FIELDS"}
	to := "http://new.default.svc"
	if d.IntN(4) == 0 {
		lines, to = append(lines, "set $to "+to+";"), "$to"
	}
	path := d.of("", "", "/in", "/in/", "/", "/in?of=")
	if strings.HasPrefix(at, "~") && to != "$to" {
		path = ""
	}
	lines = append(lines, "proxy_pass "+to+path+";", d.of("", "internal;"), d.of("", "proxy_hide_header X-User;"), d.of("", "proxy_set_header X-Mine "+d.value()+";"))
	for range d.IntN(3) {
		lines = append(lines, d.of(d.step("$uri"), d.step("$uri"), d.detour()))
	}
	if d.IntN(2) == 0 {
		lines = append(lines, d.field())
	}
	if d.IntN(4) == 0 {
		lines = append(lines, d.page(), d.of("", "proxy_intercept_errors on;"))
	}
	d.Shuffle(len(lines)-2, func(i, j int) { lines[2+i], lines[2+j] = lines[2+j], lines[2+i] })
	return "location " + at + " { " + joined(lines) + " }"
}
