package snippet_test

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

func ExampleScript() {
	made, err := snippet.Script(`
set $shown $http_origin;
if ($request_method = OPTIONS) {
  add_header Access-Control-Allow-Origin $shown;
  return 204;
}
proxy_set_header X-Origin $shown;
proxy_cookie_flags ~ secure;`, false, &snippet.Known{})
	fmt.Println(len(made.Script.Steps), "steps,", len(made.Script.Fields), "sets of fields,", made.Request[0].Name, made.Options, err)
	_, err = snippet.Script("set $a $b;", false, &snippet.Known{})
	fmt.Println(err)
	// Output:
	// 2 steps, 2 sets of fields, X-Origin [{proxy-cookie-flags ~ secure}] <nil>
	// line 1, set $a $b: variable $b is not known
}

// TestNoScripts: of what nginx would take otherwise, or where clients would decide too much,
// nothing is made.
func TestNoScripts(t *testing.T) {
	many := strings.Repeat("set $a b; ", 65)
	for text, want := range map[string]string{
		`set a b;`:                                 "not a variable and its value",
		`set $a;`:                                  "not a variable and its value",
		`set $host a;`:                             "cannot be set",
		`set $1 a;`:                                "cannot be set",
		`set $a $b;`:                               "$b is not known",
		`if ($a) { return 403; }`:                  "$a is not known",
		`if (-f $uri) { return 403; }`:             "is no variable",
		`if ($uri ~ (?=a)) { return 403; }`:        "invalid",
		`if ($host !~ (?<a>b)) { return 403; }`:    "what is not found has no groups",
		`if ($uri) { if ($host) { return 403; } }`: "no if in another",
		`set $proxy_upstream_name $arg_to;`:        "NAMESPACE-SERVICE-PORT",
		`set $proxy_upstream_name "web-80";`:       "NAMESPACE-SERVICE-PORT",
		`if ($host ~ (.*)) { rewrite ^/(.*)x /y; set $a $1; } return 302 https://$a/;`:                  "may not decide",
		`if ($uri) { proxy_pass http://x; }`:                                                            "not a whole name",
		`if ($uri) { proxy_pass http://a.b.svc/x; }`:                                                    "no path in proxy_pass in an if",
		`if ($uri) { proxy_pass http://a.b.svc; proxy_pass http://c.b.svc; }`:                           "two addresses",
		`if ($uri) { proxy_pass http://a.b.svc off; }`:                                                  "not one address",
		`if ($uri) { proxy_pass http://a.b.svc/$nobody; }`:                                              "variable $nobody is not known",
		`if ($uri) { set $to a.b.svc; proxy_pass http://$to; } set $to c.b.svc;`:                        "$to may not decide",
		`set $to a.b.svc; if ($uri) { set $to $arg_a; proxy_pass http://$to; }`:                         "$to may not decide",
		`set $To a.b.svc; if ($uri) { set $to $arg_a; proxy_pass http://$To; }`:                         "may not decide",
		`set $To a.b.svc; set $to c.b.svc; if ($uri) { proxy_pass http://$To; }`:                        "may not decide",
		`if ($uri) { proxy_pass http://$http_x_to; }`:                                                   "may not decide",
		strings.Repeat("if ($uri) { proxy_pass http://a.b.svc; } ", 17):                                 "more than 16",
		`if ($uri) { access_log off; }`:                                                                 "access_log off is not",
		many:                                                                                            "more than 64 steps",
		`set $a $arg_a; return 301 https://$a/;`:                                                        "$a may not decide which host",
		`set $a www.test; if ($uri) { set $a $arg_a; } return 301 https://$a/;`:                         "$a may not decide which host",
		`set $b $arg_a; set $a $b; return 301 https://$a/;`:                                             "$a may not decide which host",
		`if ($uri ~ ^/(.*)$) { return 301 https://$1/; }`:                                               "$1 may not decide which host",
		`rewrite ^/(?<to>.*)$ https://$to/ redirect;`:                                                   "$to may not decide which host",
		`set $a b; default_type text/html; return 200 "<p>$arg_a";`:                                     "nobody's words become a page",
		`set $a b; return 200 "<p>$arg_a"; add_header Content-Type text/html;`:                          "nobody's words become a page",
		`set $a b; return 200 "<p>$arg_a"; add_header Content-Type "text/plain b";`:                     "nobody's words become a page",
		`set $a b; return 200 "<p>$arg_a"; add_header Content-Type $arg_a;`:                             "nobody's words become a page",
		`set $a b; return 200 "<p>$arg_a"; more_clear_headers "Content-*";`:                             "nobody's words become a page",
		`set $a b; return 200 "<p>$arg_a"; more_set_headers "Content-Type: text/plain; charset=utf-7";`: "nobody's words become a page",
		`set $a b; return 200 "<p>$arg_a"; more_set_headers -a "Content-Type: text/plain";`:             "nobody's words become a page",
		`set $a b; return 299 $nothing;`:                                                                "$nothing is not known",
		`set $a b; return 100;`:                                                                         "not a status from 200",
		`set $a b; return 302;`:                                                                         "does not say where to",
		`set $a b; return 204 text;`:                                                                    "has no text",
		`set $a b; more_set_headers -x "A: b";`:                                                         `"-x" is not understood`,
		`set $a b; more_set_headers "Connection: close";`:                                               "Connection may not be set",
		`set $a b; add_header X-A b never;`:                                                             "perhaps always",
		`set $a b; expires modified 1h;`:                                                                "age of a file",
		`set $a b; proxy_set_header X-Forwarded-For $a;`:                                                "who is believed",
		`set $a b; proxy_set_header Host "a/$a";`:                                                       "not a host",
		`if ($uri) { return; }`:                                                                         "not a status",
		`return;`:                                                                                       "not a status",
		`rewrite;`:                                                                                      "not a pattern",
		`if () { break; }`:                                                                              "is no variable",
		`if { break; }`:                                                                                 "is no variable",
		`location { return 200; }`:                                                                      "not one path",
		`set $to https://a.test; return 301 $to$request_uri;`:                                           "$to may be a path or an address",
		`set $to /a; if ($uri) { set $to https://a.test; } rewrite ^/b $to permanent;`:                  "may be a path or an address",
		strings.Repeat("location = /a { return 200; } ", 65):                                            "more than 64 steps",
		strings.Repeat(`more_set_headers "A: b"; `, 60) + strings.Repeat("if ($uri) { more_clear_headers A; } ", 20): "more than 1024 changes",
		`set $a b; more_set_input_headers "X-A: a" "X-B: $a";`:                                                       "write a directive for each",
		`set $a b; more_set_input_headers "X-B: $a" "X-A: a";`:                                                       "write a directive for each",
		`set $a b; break now;`:                                                     "not understood",
		`set $a b; rewrite ^/a;`:                                                   "not a pattern",
		`set $a b; rewrite ^/a /b later;`:                                          "flag is not understood",
		`set $a b; rewrite ^/a "/b c";`:                                            "a character that none has",
		`set $a b; location /x { proxy_pass http://y; }`:                           "stands in a server-snippet alone",
		`set $a b; location /x { if ($uri) { return 200; } }`:                      "does not answer every request",
		`set $a b; location /x { rewrite ^ /y break; return 200; }`:                "does not answer",
		`set $a b; location @x { return 200; }`:                                    "in a server-snippet alone",
		`set $a b; location x { return 200; }`:                                     "does not begin with a slash",
		`set $a b; location ^~ /x { return 200; } location /x/y { return 200 b; }`: "below location ^~ /x",
		`set $a b; location ~ (?=a) { return 200; }`:                               "invalid",
		`set $a b; allow ::1; deny ::2;`:                                           "then who passes, and then all",
		`auth_request /x;`:                                                         "no server-snippet of the Ingress has an internal location for /x",
		`set $a b; proxy_hide_header X-*;`:                                         "not one field",
		`mirror /x;`:                                                               "mirror-target sends copies",
		`mirror off;`:                                                              "not one path",
		`auth_request off;`:                                                        "not one path",
		`limit_req burst=1;`:                                                       "names no zone",
		`limit_req zone=a;`:                                                        "has no limit_req_zone a",
		`limit_conn a 1;`:                                                          "has no limit_conn_zone a",
		`limit_conn a;`:                                                            "not a zone and a number",
		`limit_req_status 200;`:                                                    "not a status from 400",
		`limit_req;`:                                                               "no arguments",
		`limit_except GET { allow 10.0.0.0/8; }`:                                   "does not end by deny all",
		`limit_except GET { deny 10.0.0.0/8; deny all; }`:                          "more than allow",
		`limit_except GET { deny all; allow 10.0.0.0/8; }`:                         "more than allow",
		`limit_except GET { allow all; deny all; }`:                                "refuses nobody",
		`limit_except GET { auth_basic x; deny all; }`:                             "more than allow",
		`limit_except GET { allow x; deny all; }`:                                  "no address and no network",
		`limit_except GET { deny all; } limit_except POST { deny all; }`:           "stands once",
		`gzip maybe;`:                                                              "not understood",
		`brotli_disable a;`:                                                        "not understood",
		`error_page 404 @x;`:                                                       "no server-snippet of the Ingress has a location @x",
		`error_page 404;`:                                                          "not statuses and where they lead",
		`error_page = https://a.test;`:                                             "names no status",
		`error_page 404 =1 https://a.test;`:                                        `"1" is not a status`,
		`error_page 40x https://a.test;`:                                           `"40x" is not a status`,
		`error_page 200 https://a.test;`:                                           `"200" is not a status`,
		`error_page 404 https://$arg_a/;`:                                          "may not decide which host",
		strings.Repeat("error_page 404 https://a.test; ", 65):                      "more than 64 directives error_page",
		`auth_request_set $a;`:                                                     "not a variable and its value",
		`auth_request_set $a $upstream_x;`:                                         "$upstream_x is not known",
		`auth_request_set $a $upstream_cookie_b; add_header X-A $a;`:               "$a is not known",
		`auth_request_set $a $upstream_http_b; return 301 $a;`:                     "$a may be a path or an address",
		`set_escape_uri $a $request_uri;`:                                          "nothing else is escaped",
		`set $a b; sub_filter a;`:                                                  "not understood",
		`set $a b; sub_filter $b a;`:                                               "$b is not known",
		`sub_filter_once maybe;`:                                                   "not understood",
		`}`:                                                                        "where a directive should be",
	} {
		if made, err := snippet.Script(text, false, &snippet.Known{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", text, made, err, want)
		}
	}
	for text, want := range map[string]string{
		`location @x { proxy_pass http://a.b.svc/x; }`:                                                  "has a pattern or a name",
		`location @x { rewrite ^ /a last; }`:                                                            "places that answer",
		`location @x { if ($uri) { rewrite ^ /a; } return 200; }`:                                       "places that answer",
		`location = /ask { internal; proxy_pass http://a; add_header X-A b; }`:                          "a question to a service has nothing of that",
		`location { internal; proxy_pass http://a; }`:                                                   "not one path",
		"location = /ask { internal; proxy_pass http://a; proxy_set_header X-A \"a\nX-B: b\"; }":        "not a field of HTTP",
		`location = /ask { internal; proxy_pass http://a; proxy_set_header "X A" b; }`:                  "not a field of HTTP",
		`location ~ /ask { internal; proxy_pass http://a; }`:                                            "by a location of one path",
		`location = /ask { internal; proxy_pass http://a$uri; }`:                                        "a variable of the question itself",
		`location = /ask { internal; proxy_pass http://a; proxy_set_header X-A $args; }`:                "a variable of the question itself",
		`location /ask { internal; proxy_pass http://a; } location /ask/x { return 200; }`:              "another location may be meant",
		`location /ask { internal; proxy_pass http://a; } location ~ x { return 200; }`:                 "another location may be meant",
		`location /ask { internal; proxy_pass http://a; proxy_pass http://b; } auth_request /ask;`:      "nothing of that",
		`location = /ask { proxy_pass http://a; }`:                                                      "not a whole name",
		`location /a { proxy_pass a.b.svc; }`:                                                           "does not begin with http",
		`location /a { proxy_pass http://$host; }`:                                                      "may not decide which host is meant",
		`location /a { proxy_pass http://a.b.svc:x; }`:                                                  "is no port",
		`location /a { proxy_pass http://a.b.svc:0; }`:                                                  "is no port",
		`location /a { proxy_pass http://a.b.svc$arg_to; }`:                                             "may not decide which host is meant",
		`location /a { proxy_pass http://a.b.svc/$nobody; }`:                                            "variable $nobody is not known",
		`location /a { proxy_pass http://a.b.svc/é; }`:                                                  "no address has",
		`location /a { proxy_pass $arg_a; }`:                                                            "does not begin with http",
		`location /a { set $to $arg_a; proxy_pass $to; }`:                                               "does not begin with http",
		`location /a { set $to http://a.b.svc; set $to http://c.b.svc; proxy_pass $to; }`:               "does not begin with http",
		`location /a { set $to $arg_a; set $to http://c.b.svc; proxy_pass $to; }`:                       "does not begin with http",
		`location ~ /a { proxy_pass http://a.b.svc/x; }`:                                                "nginx takes no path",
		`location /a { proxy_pass http://a.b.svc; proxy_pass http://a.b.svc; }`:                         "not one address",
		`location /a { proxy_pass; }`:                                                                   "not one address",
		`location /a { proxy_pass http://a.b.svc; root /; }`:                                            "nothing does that here",
		`location /a { if ($uri) { proxy_pass http://c.b.svc; } return 200; }`:                          "outside of ifs",
		`if ($uri) { proxy_pass http://c.b.svc; }`:                                                      "outside of locations",
		`location /a { proxy_pass http://a.b.svc; proxy_read_timeout soon; }`:                           "not a time",
		`location /a { set $to http://a.b.svc; if ($uri) { set $to http://c.b.svc; } proxy_pass $to; }`: "does not begin with http",
		`location /a { proxy_pass http://a.b.svc; access_by_lua_block { x } }`:                          "nothing does that here",
		strings.Repeat("location /a { proxy_pass http://a.b.svc; } ", 17):                               "more than 16",
		`auth_request /ask;`:                    "no server-snippet of the Ingress",
		`error_page 404 @x;`:                    "no server-snippet of the Ingress has a location @x",
		`auth_request_set $a $upstream_http_b;`: "which have their own",
		`if ($uri) { add_header X-A b; }`:       "fields of responses in a location",
	} {
		if made, err := snippet.Script(text, true, &snippet.Known{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of a host: %+v, %v, want %q", text, made, err, want)
		}
	}
}

// TestVariablesOfOthers: a snippet has the variables of another, and does not open one on which
// that may rely.
func TestVariablesOfOthers(t *testing.T) {
	var names snippet.Known
	if _, err := snippet.Script(`set $to www.test; set $seen $arg_a; location = /a { return 301 https://$to/; }`, true, &names); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`set $to other.test; proxy_set_header X-Seen $seen;`: "",
		`set $seen $arg_b; add_header X-To $to;`:             "",
		`set $to $seen;`:                                     "clients would decide it",
		`if ($uri ~ (?<to>.*)) { break; }`:                   "clients would decide it",
		`return 301 https://$seen/;`:                         "may not decide which host",
	} {
		others := names.Clone()
		if _, err := snippet.Script(text, false, others); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestWhoSaysWhereClientsAreSent: an authentication service may, in a variable that nobody else
// sets, in whatever snippet.
func TestWhoSaysWhereClientsAreSent(t *testing.T) {
	const answer, page = `auth_request_set $to $upstream_http_location; `, `error_page 401 =302 $to; `
	for _, c := range []struct{ host, place, want string }{
		{"", answer + page, ""},
		{page, answer, ""},
		{"", answer + page + `set $to $arg_a;`, "may be a path or an address"},
		{"", answer + page + `set $to https://a.test;`, "may be a path or an address"},
		{"", answer + `if ($uri ~ (?<to>.*)) { break; } ` + page, "may be a path or an address"},
		{page, answer + `set $to $arg_a;`, "says to another snippet"},
		{page, answer + `if ($uri ~ (?<to>.*)) { break; }`, "says to another snippet"},
		{page, `set $to $arg_a;`, "may be a path or an address"},
		{`error_page 401 = https://$to/;`, answer, "may not decide which host"},
		{page + `set $to https://a.test;`, answer, "may be a path or an address"},
		{`add_header X-To $to;`, `set $to none; ` + answer, ""},
	} {
		var known snippet.Known
		snippet.Declare(c.place, &known)
		_, err := snippet.Script(c.host, true, &known)
		if err == nil {
			_, err = snippet.Script(c.place, false, known.Clone())
		}
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s beside %s: %v, want %q", c.place, c.host, err, c.want)
		}
	}
}

// TestNeedlessSnippets: what needs nothing here comes to nothing.
func TestNeedlessSnippets(t *testing.T) {
	for _, text := range []string{"# nothing\n", "auth_request_set $c $upstream_http_set_cookie;\nadd_header Set-Cookie $c;", `etag on; proxy_pass_header ETag;`, "expires off;", "large_client_header_buffers 4 8k;", "large_client_header_buffers 2 16384;", `set_escape_uri $escaped_request_uri $request_uri; proxy_ssl_verify off; proxy_intercept_errors off;`,
		"auth_request_set $name_upstream_1 $upstream_cookie_name_1;\n\naccess_by_lua_block {\n  if ngx.var.name_upstream_1 ~= \"\" then\n    ngx.header[\"Set-Cookie\"] = \"name_1=\" .. ngx.var.name_upstream_1 .. ngx.var.auth_cookie:match(\"(; .*)\")\n  end\n}",
		`proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; proxy_http_version 1.1; proxy_cache off; proxy_cache_bypass $http_upgrade; proxy_set_header Host $http_host;`} {
		made, err := snippet.Script(text, false, &snippet.Known{})
		if err != nil || !made.Script.IsEmpty() || len(made.Options)+len(made.Request)+len(made.Denied) > 0 || made.Host != nil {
			t.Errorf("%s comes to %+v, %v", text, made, err)
		}
	}
}

// FuzzScript: whatever a snippet says and a client asks, the script ends, no field that it makes
// ends early, the backend is sent one path, and a client is sent elsewhere only by words of the
// snippet or by the host that it asked.
func FuzzScript(f *testing.F) {
	const tables = `map $arg_a $t { default x; ~^(.*)$ "$1$uri"; "b" $u; } map $uri $u { hostnames; .a.test 1; *.b 2; /c.* 3; } geo $arg_a $g { 10.0.0.0/8 a; } split_clients $args $p { 1% a; * b; } limit_req_zone $t zone=z:1m rate=1r/s;`
	for _, seed := range [][2]string{
		{`set $a $uri; if ($a ~ ^/(.)) { set $a "$a$a$1"; } rewrite ^/(.*)$ /$a/$1;`, "/abc"},
		{`rewrite ^/(.*)$ /x/$1 last; add_header X-A "$1" always;`, "/a?b=c"},
		{`location ~ ^/(?<x>.*)$ { return 302 /in/$x; } location = /y { add_header A "$uri"; return 404 z; }`, "/a\r\nb"},
		{`if ($host ~ ^(?<sub>.*)\.test) { return 301 https://$sub.new.test$request_uri; } rewrite .* $scheme://b.test/$uri redirect;`, "/%2e%2e//evil"},
		{`if ($uri) { return; } rewrite; return; set; expires; location;`, "/"},
		{`set $t www.test; if ($arg_a = $arg_b) { return 307 https://$t/$arg_a; } break;`, "/?a=//&b=//"},
		{`more_set_headers -s "404 200" -t text/plain "X: $http_x" X-B; more_clear_headers X-*; expires -1; return 200 "$args";`, "/?\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	for _, text := range []string{
		`error_page 404 =200 /index.html?$args; proxy_intercept_errors on; error_page 403 http://a.test/$uri;`,
		`error_page 404 @x; location @x { if ($uri ~ (.*)) { add_header X-A "$1"; return 302 /$1; } return 404 "$args"; }`,
		`if ($t = $u) { return 302 /$t; } set $a "$g$p"; rewrite ^ /$a/$u; add_header X "$t"; limit_req zone=z burst=5; limit_except GET { deny all; }`,
		`location { internal; proxy_pass http://a; } auth_request /; error_page; limit_req; map; geo $a;`,
		`auth_request_set $to $upstream_http_location; error_page 404 =302 $to; gzip on; gzip_types a/b;`,
		`if ($http_x) { set $best_http_host $http_x; } set $was $best_http_host; add_header X-Was $was; server_name _;`,
		`auth_request /ask/x; location /ask { internal; set $g http://g; proxy_pass $g/$request_uri; proxy_set_header Host $host; }`,
		`set $a "$arg_a"; location /a/ { set $b "$a"; proxy_pass http://a.b.svc/c; add_header X $b; } location ~ ^/(.*)x { proxy_pass http://a.b.svc; if ($1) { return 302 /$1; } if ($a) { set $b c.d.svc; proxy_pass http://$b/$1; } }`,
		`location /a { rewrite ^ /b last; } location = /b { internal; return 200 b; } return 403; error_page 403 /b;`,
	} {
		f.Add(text, "/a?b=c")
	}
	tools := filter.NewTools(maphash.MakeSeed())
	tools.Place.Path = "/"
	tools.Normalize = func(dst, target []byte) ([]byte, bool) {
		path, _, _ := bytes.Cut(target, []byte("?"))
		return append(dst, path...), bytes.HasPrefix(path, []byte("/"))
	}
	f.Fuzz(func(t *testing.T, text, target string) {
		if _, query, _ := strings.Cut(target, "?"); strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return // no front end takes that
		}
		for _, ofHost := range []bool{false, true} {
			known := &snippet.Known{}
			snippet.Tables(tables, known)
			made, err := snippet.Script(text, ofHost, known)
			if err != nil {
				continue
			}
			settings := &filter.Settings{Scripts: []*filter.Script{made.Script}, RequestHeaders: made.Request, UpstreamHost: made.Host}
			chain := filter.Compile(settings, filter.Host{}, tools)
			ex := &exchange.Exchange{}
			ex.Request.Method, ex.Request.Host = []byte("GET"), []byte("asked.test")
			ex.Request.Target = []byte("/" + target)
			ex.Request.Path, _ = tools.Normalize(nil, ex.Request.Target)
			for range 100 {
				if chain.Request(ex) || !ex.Script.Moved {
					break
				}
				ex.Script.Again()
			}
			checkScripted(t, text, ex)
			if pages := filter.PagesOf(settings, tools); pages != nil {
				ex.Script.Before = ex.Copy()
				if ex.Response.Status == 0 {
					ex.Answer(404, "")
				}
				pages.Replace(ex, true)
				ex.Script.Moved = false // whoever runs it goes there
			}
			chain.Response(ex)
			checkScripted(t, text, ex)
		}
	})
}

func checkScripted(t *testing.T, text string, ex *exchange.Exchange) {
	if ex.Script.Moved {
		t.Fatalf("%q: it never ends", text)
	}
	for _, h := range []*exchange.Header{&ex.Request.Header, &ex.Response.Header} {
		for _, field := range h.Fields() {
			if !exchange.IsFieldValue(field.Value) || !exchange.IsToken(field.Name) {
				t.Fatalf("%q: field %q: %q", text, field.Name, field.Value)
			}
		}
	}
	moved := ex.Response.Status == 0 && ex.Script.Passes > 0
	if moved && (ex.Request.Target[0] != '/' || bytes.HasPrefix(ex.Request.Target, []byte("//")) || bytes.ContainsAny(ex.Request.Target, " \r\n\x00")) {
		t.Fatalf("%q: the path becomes %q", text, ex.Request.Target)
	}
	to := string(ex.Response.Header.Get("Location"))
	_, after, isAddress := strings.Cut(to, "://")
	if end := strings.IndexAny(after, "/?#\\"); end >= 0 {
		after = after[:end]
	}
	if isAddress && strings.Contains(after, "evil") && !strings.Contains(text, "evil") {
		t.Fatalf("%q: the client is sent to %q", text, to)
	}
}

// FuzzTables: whatever the proxy's snippet has, its variables have values, and only once.
func FuzzTables(f *testing.F) {
	for _, seed := range [][2]string{
		{`map $http_x $a { default 1; ~*^(.)(.)$ "$2$1"; "" 0; 'b c' $uri; } map $a $b { 1 x; }`, "ab"},
		{`map $host $a { hostnames; *.a.test 1; .b.test 2; c.* 3; d.test 4; }`, "x.a.test"},
		{`geo $a { 10.0.0.0/8 1; ::1 2; default 3; } geo $arg_b $c { 0.0.0.0/0 x; }`, "::1"},
		{`split_clients "$http_x" $a { 0.01% a; 99.99% b; } split_clients $uri $b { 100% c; * d; }`, "q"},
		{`map $a $b { } map $b $a { } limit_req_zone $b zone=:1 rate=1r/s; limit_conn_zone $host zone=a:1m; proxy_pass x;`, ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		known := &snippet.Known{}
		snippet.Tables(text, known)
		template, err := known.ParseTemplate("$a-$b")
		if err != nil {
			return
		}
		ex := &exchange.Exchange{}
		ex.Request.Method, ex.Request.Host, ex.Request.Target, ex.Request.Path = []byte("GET"), []byte(value), []byte("/"), []byte("/")
		ex.Request.Header.Add("X", value)
		chain := filter.Compile(&filter.Settings{HashKey: template}, filter.Host{}, filter.Tools{})
		chain.Request(ex)
		first := string(ex.Request.HashKey)
		ex.Request.Header.Set("X", value+"other")
		chain.Request(ex)
		if again := string(ex.Request.HashKey); again != first {
			t.Errorf("%q: %q, and then %q", text, first, again)
		}
	})
}

// TestSecondsOf reads times as nginx does.
func TestSecondsOf(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "90": 90, "90s": 90, "5m": 300, "1h30m": 5400, "30d": 2592000, "1w": 604800, "1M": 2592000, "1y": 31536000, "10y": 315360000, "1y 1d": 31622400} {
		if got, ok := snippet.SecondsOf(text); got != want || !ok {
			t.Errorf("%s: %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "s", "1ms", "500ms", "1m1h", "-1", "1.5h", "max", "off", "epoch", "11y", "99999999999", "4294967295y", "1y1y", "1x"} {
		if got, ok := snippet.SecondsOf(text); ok {
			t.Errorf("%q is %d seconds", text, got)
		}
	}
}

// TestDeclareChoice: a backend that a snippet chooses keeps none of the variables behind it from
// being known.
func TestDeclareChoice(t *testing.T) {
	var known snippet.Known
	snippet.Declare("set $proxy_upstream_name shop-web-80; set $late $arg_a;", &known)
	if _, err := snippet.Script("add_header X-Late $late;", true, &known); err != nil {
		t.Error(err)
	}
}

// TestQuestionsAreAsked: a location that is there for questions alone is known as one; one that
// paths are moved to is not.
func TestQuestionsAreAsked(t *testing.T) {
	const inner = "location = /ask { internal; proxy_pass http://gate.default.svc; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }"
	for text, want := range map[string]bool{"auth_request /ask; " + inner: true, "location = /ask { internal; return 200 a; }": false} {
		made, err := snippet.Script(text, true, &snippet.Known{})
		if err != nil {
			t.Fatal(err)
		}
		if p := made.Script.Places; len(p) != 1 || !p[0].Internal || p[0].Asked != want {
			t.Errorf("%s: %+v", text, p)
		}
	}
}
