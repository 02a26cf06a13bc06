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
		{"configuration-snippet", "rewrite ^/old$ /new redirect;\nif ($http_x = a) { return 403; }"}:                                           "",
		{"configuration-snippet", "set $blocked $http_x;\nif ($blocked) { return 403; }"}:                                                      "",
		{"configuration-snippet", "if ($http_x ~ (?!a)) { return 403; }"}:                                                                      "",
		{"configuration-snippet", "if ($http_x = a) { set $y 1; return 403; }"}:                                                                "",
		{"configuration-snippet", "if ($http_x = a) { return 403 \"no\"; }"}:                                                                   "",
		{"configuration-snippet", "if ($http_x = a) { return 200; }"}:                                                                          "",
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
