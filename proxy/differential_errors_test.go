package proxy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"quayside.io/proxy/snippet"
)

// guarded is c with options of its own, and what those are to nginx.
func (c sameCase) guarded(with map[string]string, inside, server string) sameCase {
	maps.Copy(c.with, with)
	c.inside += inside
	c.server += server
	return c
}

// asking is c with no other requests than those.
func (c sameCase) asking(requests ...string) sameCase {
	c.requests = requests
	return c
}

// TestErrorPagesSameAsNginx gives snippets with error_page to nginx, over what the proxy refuses
// and what backends answer.
func TestErrorPagesSameAsNginx(t *testing.T) {
	const says = `location @says { add_header X-Page "$uri $request_method" always; default_type application/json; return 429 '{"error":true}'; } location @login { return 302 https://login.test/?rd=$scheme://$host$request_uri; }
		location @plain { if ($http_x_own) { return 200 "yours"; } return 403; } location = /page { internal; return 200 "page"; } location @none { return 204; } add_header X-Server yes always;`
	gate := map[string]string{"auth-url": "http://gate.default.svc.cluster.local/check"}
	const asks, asked = `auth_request /_ask;`, `location = /_ask { internal; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Original-URL $scheme://$http_host$request_uri; proxy_pass http://GATE/check; }`
	basic := map[string]string{"auth-type": "basic", "auth-secret": "users", "auth-realm": "Staff"}
	const asksUser = `auth_basic "Staff"; auth_basic_user_file USERS; proxy_set_header Authorization "";`
	requests := []string{"/x?a=b", "/x\nCookie: say=yes", "POST /x\n\nbody5", "HEAD /x", "/x\nX-Own: 1", "/page", "/x\nAuthorization: Basic YW5uOnRlc3Q=", "/status/404", "/status/404\nCookie: say=yes", "/status/500?a=b\nCookie: say=yes\nX-Own: 1", "POST /status/503\nCookie: say=yes\n\nbody5", "PUT /status/302"}
	refused := slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return r == "/x\nCookie: say=yes" }) // which gets cookies
	over := func(place, host string) sameCase { return scripted(place, host, requests...) }
	cases := []sameCase{
		over(`if ($request_method = PUT) { return 405; } if ($arg_a) { return 409 "in words"; } error_page 405 =200 @says; error_page 409 @says;`, says),
		over(`if ($http_x_own) { return 429; } if ($arg_a) { return 503; } error_page 429 503 @says;`, says),
		over(`return 401; error_page 401 @login; error_page 401 @says;`, says),
		over(`if ($arg_a) { return 401; } if ($http_x_own) { return 402; } if ($request_method = POST) { return 403; } return 404; error_page 401 = @says; error_page 402 =418 @says; error_page 403 =302 @says; error_page 404 =201 @plain;`, says),
		over(`return 404; error_page 404 @plain;`, says),
		over(`return 404; error_page 404 = @plain;`, says),
		over(`return 404; error_page 404 =503 @plain;`, says),
		over(`return 404; error_page 404 @none;`, says),
		over(`return 404; error_page 404 = @none; add_header X-Place yes always; more_set_headers "X-More: yes";`, says),
		over(`return 410; error_page 410 /page;`, says),
		over(`return 410; error_page 410 =200 /page;`, says),
		over(`return 403; error_page 403 https://new.test/denied?from=$request_uri; add_header X-Place yes always;`, ""),
		over(`return 403; error_page 403 =307 https://new.test$request_uri;`, ""),
		over(`return 403; error_page 403 = $scheme://$host/denied;`, ""),
		over(`return 403; error_page 404 @says;`, says+` error_page 403 @login;`),
		over(`return 403;`, says+` error_page 403 @login; error_page 404 @says; location = /x { return 404; }`),
		over(`error_page 403 @says; error_page 402 @says;`, says+` error_page 403 @login; if ($arg_a) { return 403; } if ($http_x_own) { return 402; }`),
		over(`proxy_intercept_errors on; error_page 404 @says; error_page 500 =200 @plain; error_page 302 = @login;`, says),
		over(`proxy_intercept_errors on;`, says+` error_page 404 503 @plain;`),
		over("", says+` proxy_intercept_errors on; error_page 404 503 = @says;`),
		over(`error_page 404 503 = @says;`, says),
		over(`proxy_intercept_errors off; error_page 404 503 = @says;`, says),
		over(`proxy_intercept_errors on; error_page 404 =200 /index.html; error_page 500 /sorry?of=$uri; proxy_set_header X-Own-Only $uri;`, ""),
		over(`proxy_intercept_errors on; error_page 404 =418 /docs; error_page 500 /x; rewrite ^/in(.*)$ /there$1 break;`, `rewrite ^/(docs)$ /in/docs break; rewrite ^/x$ /y; rewrite ^/y$ /x last;`),
		over(`proxy_intercept_errors on; error_page 404 =418 /docs;`, `rewrite ^/(docs)$ /docs;`),
		over(`proxy_intercept_errors on; error_page 404 /status/404; error_page 500 = /status/503;`, ""),
		over(`if ($http_x_own) { return 503; } error_page 503 /new$uri; rewrite ^/new(.*)$ /newer$1?p=q break;`, ""),
		over("", `if ($http_x_own) { return 503; } error_page 503 /x; location = /x { if ($request_method = PUT) { return 403; } return 200 x; }`),
		over("", says+` error_page 401 = @login;`).guarded(gate, asks, asked).asking(refused...),
		over(`error_page 401 @says;`, says).guarded(gate, asks, asked).asking(refused...),
		over(`error_page 401 = @plain; proxy_intercept_errors on; error_page 404 = @says;`, says).guarded(gate, asks, asked).asking(refused...),
		over(`error_page 401 =303 https://login.test/?rd=$request_uri;`, "").guarded(gate, asks, asked).asking(refused...),
		over(`auth_request_set $who $upstream_http_x_user; auth_request_set $answered $upstream_status; proxy_set_header X-Who "it is $who"; proxy_set_header X-None $none; auth_request_set $none $upstream_http_x_none; add_header X-Seen "$who $answered" always;
			set $early "<$who>"; proxy_set_header X-Early $early; if ($who = ann) { return 409; }`, "").guarded(gate, asks, asked).asking(refused...),
		over(`auth_request_set $why $upstream_http_x_why; auth_request_set $code $upstream_status; auth_request_set $to $upstream_http_location; error_page 401 =302 $to; error_page 403 @why;`,
			`location @why { add_header X-Why "$why $code" always; if ($code = 401) { return 418 "$why"; } return 403; }`).guarded(gate, asks, asked).asking(refused...),
		over(`auth_request_set $why $upstream_http_x_why; auth_request_set $code $upstream_status; error_page 401 = @why;`,
			`location @why { add_header X-Why "$why $code" always; if ($code = 401) { return 418 no; } return 403; }`).guarded(gate, asks, asked).asking(refused...),
		over(`error_page 401 @says;`, says).guarded(basic, asksUser, ""),
		over(`error_page 401 = @login;`, says).guarded(basic, asksUser, ""),
		over("", says+` error_page 403 @says; proxy_set_header Cookie $http_cookie;`).guarded(map[string]string{"whitelist-source-range": "10.0.0.0/8"}, "allow 10.0.0.0/8; deny all;", ""),
	}
	compareWithNginx(t, cases)
}

// TestQuestionsSameAsNginx gives snippets to nginx that have a service asked by a location of
// their own.
func TestQuestionsSameAsNginx(t *testing.T) {
	requests := []string{"/x?a=b", "/x\nCookie: say=yes", "POST /x\nCookie: say=yes\nX-Own: 1\n\nbody5", "POST /x\n\nbody5", "/ask", "/ask/inner\nCookie: say=yes", "/x/y?z\nCookie: say=yes\nX-Ask: mine"}
	const told = `auth_request_set $asked $upstream_http_x_asked; auth_request_set $who $upstream_http_x_user; proxy_set_header X-User $who; add_header X-Asked $asked always; `
	var cases []sameCase
	for _, c := range []struct{ place, host string }{
		{`auth_request /ask;`, `location = /ask { internal; proxy_pass http://gate.default.svc.cluster.local/check; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Ask "all but the host"; }`},
		{`auth_request /ask/inner;`, `location ^~ /ask { internal; set $gate http://gate.default.svc.cluster.local; proxy_pass $gate/verify?of=$request_uri; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header Host $http_host; proxy_set_header X-Ask $scheme://$http_host$request_uri,$request_method; proxy_http_version 1.1; }`},
		{`auth_request /ask/inner;`, `location /ask { internal; proxy_pass http://gate.default.svc.cluster.local/in; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header Host asked.test; proxy_set_header X-Ask $remote_addr; proxy_set_header X-Own ""; } location /as { return 200 never; }`},
		{`auth_request /ask; error_page 401 =302 https://login.test/?rd=$scheme://$http_host$request_uri;`, `location = /ask { internal; proxy_pass http://gate.default.svc.cluster.local; proxy_method POST; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Ask "all but the host"; }`},
		{`auth_request /ask; error_page 401 = @login;`, `location @login { add_header X-Asked $asked always; return 302 /login; } location = /ask { internal; proxy_pass http://gate.default.svc.cluster.local/a/b; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Ask "all but the host"; }`},
		{`auth_request /ask/inner;`, `location /ask { internal; set $gate http://gate.default.svc.cluster.local; proxy_pass $gate/whole; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Ask "all but the host"; }`},
		{``, `auth_request /ask; location = /ask { internal; auth_request off; proxy_pass http://gate.default.svc.cluster.local; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Ask "all but the host"; } location = /free { return 200 free; }`},
	} {
		s := scripted(told+c.place, c.host, append(requests, "/free")...)
		s.server = strings.ReplaceAll(s.server, "gate.default.svc.cluster.local", "GATE")
		cases = append(cases, s)
	}
	compareWithNginx(t, cases)
}

// TestDrawnErrorPagesSameAsNginx draws scripts with error pages, over routes with and without
// guards, and gives those that are obeyed to nginx, too.
func TestDrawnErrorPagesSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := scriptDrawer{parts}
	var cases []sameCase
	for len(cases) < count {
		place, host := draw.place()+"\n"+draw.page()+draw.page()+draw.of("", "proxy_intercept_errors on;"), draw.host()+"\n"+draw.page()+draw.of("", draw.page())
		if draw.IntN(4) == 0 {
			place = strings.ReplaceAll(draw.place(), "error_page", "#")
		}
		host += "\nlocation @a { " + draw.of("", draw.field(), "set $of_host c;") + draw.of("return 200 fine;", "return 403;", "return 429 'slower';", "return 302 /login?from=$request_uri;", "if ($arg_a) { return 404; } return 503 gone;") + " } location = /page { " + draw.of("internal;", "", "add_header X-Page p always;") + " return 200 page; }"
		var names snippet.Known
		snippet.Declare(place, &names)
		_, err := snippet.Script(host, true, &names)
		if err == nil {
			_, err = snippet.Script(place, false, &names)
		}
		if err != nil {
			t.Logf("%s %s: %v", place, host, err)
			continue
		}
		c := scripted(place, strings.NewReplacer("$made", "$of_host", "$safe", "$safe_host").Replace(host), "/docs?a=b", "/new/x?a=0", "/old/a%20b/c?x=1&a=1", "/x?a=b\nCookie: c=1", "POST /old/x\nX-Own: /x\n\nbody5", "/page", "/status/404?a=b", "/status/302", "/status/500?a=1", "PUT /x?c=2&a=0", "HEAD /status/503")
		if draw.IntN(3) == 0 {
			c = c.guarded(map[string]string{"whitelist-source-range": "10.0.0.0/8"}, "allow 10.0.0.0/8; deny all;", "")
		}
		cases = append(cases, c)
	}
	compareWithNginx(t, cases)
}

// page draws where some errors lead.
func (d scriptDrawer) page() string {
	if d.IntN(3) == 0 { // where the body goes, too, to which nginx says GET
		return "error_page " + d.of("404", "500", "404 500") + d.of("", " =", " =200", " =418") + " " + d.of("/else/where?of=$request_uri", "/status/404", "/docs") + ";\n"
	}
	return "error_page " + d.of("403", "404 405", "500 503", "403 404") + d.of("", " =", " =200", " =418", " =307") + " " + d.of("@a", "/page", "https://new.test/e?of=$request_uri") + ";\n"
}
