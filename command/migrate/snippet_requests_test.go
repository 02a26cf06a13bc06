package migrate

import (
	"strings"
	"testing"
)

// A snippet that refuses requests becomes denied-requests, and stays whole where nginx would
// have let some pass.
func TestSnippetsThatRefuseRequests(t *testing.T) {
	type given struct{ key, text string }
	for g, want := range map[given]string{
		{"configuration-snippet", "if ($request_method !~ ^(GET|HEAD)$) { return 405; }\nif ( $http_x_key != \"a key\" ) {\n  return 401;\n}"}: "$request_method !~ ^(GET|HEAD)$ 405\n$http_x_key != \"a key\" 401",
		{"configuration-snippet", "if ($http_user_agent ~* \" bot|^$\") { access_log off; return 444; }"}:                                      "$http_user_agent ~* \" bot|^$\"",
		{"configuration-snippet", "if ($arg_debug) { return 403; }\nif ($http_x = '') { return 404; }\nserver_tokens off;"}:                    "$arg_debug !~ ^0?$\n$http_x = \"\" 404",
		{"configuration-snippet", "if ($http_x = a) { return 403; }\nrewrite ^/old$ /new redirect;"}:                                           "$http_x = a",
		{"configuration-snippet", "rewrite ^/old$ /new redirect;\nif ($http_x = a) { return 403; }"}:                                           "$http_x = a",
		{"configuration-snippet", "return 302 https://new.test;\nif ($http_x = a) { return 403; }"}:                                            "",
		{"configuration-snippet", "rewrite ^/old$ /new last;\nif ($http_x = a) { return 403; }"}:                                               "",
		{"configuration-snippet", "set $blocked $http_x;\nif ($blocked) { return 403; }"}:                                                      "",
		{"configuration-snippet", "if ($http_x ~ (?!a)) { return 403; }"}:                                                                      "",
		{"configuration-snippet", "if ($http_x = a) { set $y 1; return 403; }"}:                                                                "",
		{"configuration-snippet", "if ($http_x = a) { return 403 \"no\"; }"}:                                                                   "",
		{"configuration-snippet", "if (-f $request_filename) { return 403; }"}:                                                                 "",
		{"configuration-snippet", "if ($uri ~ ^/admin) { return 403; }"}:                                                                       "",
		{"server-snippet", "if ($request_method = TRACE) { return 405; }\nlocation = /robots.txt { return 404; }"}:                             "$request_method = TRACE 405",
		{"server-snippet", "if ($request_uri = /robots.txt) {\n return 444;\n}"}:                                                               "$request_uri = /robots.txt",
	} {
		at := Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + g.key: g.text, prefix + "denied-requests": "$arg_own = 1"}}
		for _, alone := range []bool{true, false} {
			want := want
			if !alone && g.key == "server-snippet" {
				want = "" // the host is of others, too
			}
			meta, beside, notes := withoutSnippets(at, shopPaths("/"), alone)
			_, stays := meta.Annotations[prefix+g.key]
			if got := meta.Annotations[prefix+"denied-requests"]; got != strings.TrimSuffix("$arg_own = 1\n"+want, "\n") || stays != (want == "") {
				t.Errorf("%s %q comes to %q, stays %v: %q", g.key, g.text, got, stays, notes)
			}
			for _, o := range beside {
				if got := o.Metadata.Annotations[prefix+"denied-requests"]; got != want {
					t.Errorf("%s %q: what it says of a path comes to %q", g.key, g.text, got)
				}
			}
		}
	}
}

// A snippet that rewrites paths on the way to the backend becomes rewritten-paths, and one that
// answers some requests answered-requests.
func TestSnippetsThatRewriteOrAnswer(t *testing.T) {
	for _, c := range []struct {
		option, text string
		want         string // empty: the snippet stays
	}{
		{"rewritten-paths", "rewrite ^/kibana(/|$)(.*) /$2 break; proxy_buffering off;", "^/kibana(/|$)(.*) /$2"},
		{"rewritten-paths", "if ($http_x) { return 403; } rewrite ^/a /b break; rewrite ^/c /d break;", "^/a /b\n^/c /d"},
		{"rewritten-paths", "rewrite ^/a /b break; if ($http_x) { return 403; }", ""},
		{"rewritten-paths", "rewrite ^/a /b break; rewrite ^/c /d redirect;", ""},
		{"rewritten-paths", "rewrite ^/a(?=b) /b break;", ""},
		{"rewritten-paths", "rewrite ^/a /b last;", ""},
		{"answered-requests", "if ($request_method = OPTIONS) { return 204; }", "$request_method = OPTIONS 204"},
		{"answered-requests", `if ($http_x) { return 403; } if ($uri = /up) { return 200 "up\n"; }`, `$uri = /up 200 "up\n"`},
		{"answered-requests", "if ($request_method = OPTIONS) { return 204; } if ($http_x = a) { return 403; }", ""},
		{"answered-requests", "if ($request_method = OPTIONS) { add_header A b; return 204; }", ""},
		{"answered-requests", "if ($http_x) { return 404 no; }", ""},
	} {
		at := Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + "configuration-snippet": c.text}}
		meta, beside, notes := withoutSnippets(at, shopPaths("/"), true)
		_, stays := meta.Annotations[prefix+"configuration-snippet"]
		if got := meta.Annotations[prefix+c.option]; got != c.want || stays != (c.want == "") || len(beside) > 0 {
			t.Errorf("%q comes to %q, stays %v: %q", c.text, got, stays, notes)
		}
	}
	// Of a host it has to be said for all paths.
	for path, stays := range map[string]bool{"/": false, "/app": true} {
		at := Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + "server-snippet": "if ($request_method = OPTIONS) { return 204; }"}}
		meta, _, notes := withoutSnippets(at, shopPaths(path), true)
		if _, still := meta.Annotations[prefix+"server-snippet"]; still != stays {
			t.Errorf("on %s it stays %v: %q", path, still, notes)
		}
	}
}

// A snippet that sends requests elsewhere becomes redirected-requests. What is said of a host
// has to be said of all its paths, and of nobody else's.
func TestSnippetsThatRedirectRequests(t *testing.T) {
	for _, c := range []struct {
		key, text string
		path      string
		shared    bool
		want      string // empty: the snippet stays
	}{
		{"configuration-snippet", "rewrite ^(/dash)$ $1/ redirect; proxy_buffering off;", "/dash", true, "$uri ~ ^(/dash)$ $1/$is_args$args"},
		{"configuration-snippet", "if ($host = www.a.test) { return 301 https://a.test$request_uri; } rewrite ^/old https://new.test/? permanent;", "/", true,
			"$host = www.a.test https://a.test$request_uri 301\n$uri ~ ^/old https://new.test/ 301"},
		{"configuration-snippet", "if ($http_x) { return 403; } return 302 https://new.test;", "/", true, "$uri ~ ^ https://new.test"},
		{"configuration-snippet", "if ($http_x) { return 302 https://new.test; } if ($http_y) { return 403; }", "/", true, "$http_x !~ ^0?$ https://new.test"},
		{"configuration-snippet", "return 302 https://new.test; if ($http_y) { return 403; }", "/", true, ""},
		{"configuration-snippet", "rewrite ^/a(?=b) /c permanent;", "/", true, ""},
		{"configuration-snippet", "rewrite ^/a https://$arg_to/ permanent;", "/", true, ""},
		{"configuration-snippet", "rewrite ^/a /b permanent; proxy_pass http://x;", "/", true, ""},
		{"server-snippet", "if ($http_x_forwarded_proto = http) { return 308 https://$host$request_uri; }", "/", false, "$http_x_forwarded_proto = http https://$host$request_uri 308"},
		{"server-snippet", "if ($http_x_forwarded_proto = http) { return 308 https://$host$request_uri; }", "/", true, ""},
		{"server-snippet", "if ($http_x_forwarded_proto = http) { return 308 https://$host$request_uri; }", "/app", false, ""},
		{"server-snippet", "if ($http_x) { return 308 https://new.test; } location = /m { return 404; }", "/", false, ""},
		{"server-snippet", "rewrite ^/a https://new.test/ last;", "/", false, "$uri ~ ^/a https://new.test/$is_args$args"},
	} {
		at := Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + c.key: c.text}}
		meta, beside, notes := withoutSnippets(at, shopPaths(c.path), !c.shared)
		_, stays := meta.Annotations[prefix+c.key]
		if got := meta.Annotations[prefix+"redirected-requests"]; got != c.want || stays != (c.want == "") || len(beside) > 0 {
			t.Errorf("%s %q on %s comes to %q, stays %v: %q", c.key, c.text, c.path, got, stays, notes)
		}
	}
}
