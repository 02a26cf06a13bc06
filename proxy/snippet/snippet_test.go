package snippet_test

import (
	"fmt"
	"strings"
	"testing"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/snippet"
)

func ExampleOptions() {
	options, _, err := snippet.Options(`
more_set_headers "X-Frame-Options: DENY";
proxy_set_header X-Real-Host $host;
auth_request_set $user $upstream_http_x_auth_request_user;
proxy_set_header X-User $user;
proxy_buffering off;`)
	for _, o := range options {
		fmt.Printf("%s: %q\n", o.Key, o.Value)
	}
	fmt.Println(err)
	_, _, err = snippet.Options("proxy_buffering off;\ndeny all;")
	fmt.Println(err)
	// Output:
	// response-headers: "X-Frame-Options: DENY"
	// request-headers: "X-Real-Host: $host\nX-User: $http_x_auth_request_user"
	// auth-response-headers: "X-Auth-Request-User"
	// <nil>
	// of allow and deny it is not addresses first, and then deny all
}

func ExampleOn() {
	list, _ := nginxconf.Parse("expires 1h; access_log off; return 403;")
	for _, d := range list {
		said, known := snippet.On(&d)
		fmt.Println(d.Name(), said.Options, known)
	}
	// Output:
	// expires [{success-headers Cache-Control: max-age=3600}] true
	// access_log [{enable-access-log false}] true
	// return [] false
}

// TestWhoIsRefused: what decides who passes becomes the options that refuse the same.
func TestWhoIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"allow 10.0.0.0/8; allow ::1; deny all; proxy_buffering off;":                                               "[{allowlist-source-range 10.0.0.0/8,::1}]",
		"if ($host = a) { return 403; } rewrite ^/kibana(/|$)(.*) /$2 break; rewrite \"^/a b\" /c? break;":          "[{denied-requests $host = a} {rewritten-paths ^/kibana(/|$)(.*) /$2\n\"^/a b\" /c?}]",
		"if ($request_method = OPTIONS) { return 204; } rewrite ^/a /b break;":                                      "[{answered-requests $request_method = OPTIONS 204} {rewritten-paths ^/a /b}]",
		"location = /a { default_type a/b; return 200 'x \\y\n\"'; access_log off; } location = /c { return 204; }": `[{answered-requests $uri = /a 200 a/b "x \\y\n""` + "\n$uri = /c 204}]",
		`location /metrics { return 404; } location ~ /\.git { deny all; } proxy_buffering off;`:                    "[] [/metrics 404 ~ /\\.git]",
		`if ($request_method !~ ^(GET|HEAD)$) { return 405; } if ($http_user_agent ~* "bad bot") { return 444; }`:   "[{denied-requests $request_method !~ ^(GET|HEAD)$ 405\n$http_user_agent ~* \"bad bot\"}]",
	} {
		options, denied, err := snippet.Options(text)
		if got := fmt.Sprint(options, denied); err != nil || strings.TrimSuffix(got, " []") != want {
			t.Errorf("%s comes to %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestWhoIsRedirected: what nginx sends elsewhere before it looks for a place is sent there by
// one option.
func TestWhoIsRedirected(t *testing.T) {
	for text, want := range map[string]string{
		`rewrite ^(/docs)$ $1/ redirect;`:                                                         "$uri ~ ^(/docs)$ $1/$is_args$args",
		`rewrite ^/old/(.*)$ https://new.test/$1? permanent;`:                                     "$uri ~ ^/old/(.*)$ https://new.test/$1 301",
		`rewrite ^/old https://new.test/;`:                                                        "$uri ~ ^/old https://new.test/$is_args$args",
		`rewrite ^/old $scheme://new.test/ last;`:                                                 "$uri ~ ^/old $scheme://new.test/$is_args$args",
		`rewrite "^/a b" /c permanent;`:                                                           `$uri ~ "^/a b" /c$is_args$args 301`,
		`return 308 https://new.test$request_uri;`:                                                "$uri ~ ^ https://new.test$request_uri 308",
		`return https://new.test;`:                                                                "$uri ~ ^ https://new.test",
		`if ($http_x_forwarded_proto = http) { return 301 https://$host$request_uri; }`:           "$http_x_forwarded_proto = http https://$host$request_uri 301",
		`if ($host ~* ^www\.(.*)$) { return 301 https://$1$request_uri; }`:                        "$host ~* ^www\\.(.*)$ https://$1$request_uri 301",
		`if ($scheme = http) { rewrite ^(.*)$ https://$host$1 permanent; }`:                       "$scheme = http https://$host$uri$is_args$args 301",
		`if ($arg_a) { rewrite ^/(.*)$ https://new.test/$1? redirect; }`:                          "$arg_a !~ ^0?$ https://new.test$uri",
		`if ($uri = /a) { return 302 /b; } rewrite ^ /c permanent;`:                               "$uri = /a /b\n$uri ~ ^ /c$is_args$args 301",
		`if ($arg_a) { rewrite ^ https://new.test/$1? redirect; }`:                                "",
		`if ($arg_a) { rewrite ^/(.*)$ https://new.test/a$1 redirect; }`:                          "",
		`if ($arg_a) { rewrite ^/old https://new.test/ redirect; }`:                               "",
		`if ($arg_a) { return 301 https://new.test/; access_log off; }`:                           "",
		`rewrite ^/a /b?c=d redirect;`:                                                            "",
		`rewrite ^/a /b break; rewrite ^/c /d permanent;`:                                         "",
		`rewrite ^/a /b last;`:                                                                    "",
		`return 302;`:                                                                             "",
		`return 299 $nothing;`:                                                                    "",
		`return 301 "/a b";`:                                                                      "",
		`location = /a { return 301 /b; } location = /c { return 302 /d; } rewrite ^/e /f break;`: "$uri = /a /b 301\n$uri = /c /d} {rewritten-paths ^/e /f",
		`if ($http_x = y) { return 200; } if ($http_y) { return 403; }`:                           "",
		`if ($http_x = y) { return 200; } rewrite ^/a /b permanent;`:                              "",
		`return 200 a; if ($http_x = y) { return 204; }`:                                          "",
		`location = /a { return 200 b; } if ($http_x = y) { return 403; }`:                        "",
		`location /a { return 200 b; }`:                                                           "",
		`location = /a { return 200 b; more_set_headers "A: b"; }`:                                "",
		`if ($http_x) { return 404 "not here"; }`:                                                 "",
		`location = /a { return 301 /b; } if ($http_x = y) { return 403; }`:                       "",
		`if ($http_x = y) { return 302 /c; } location = /a { return 301 /b; }`:                    "",
		`return 301 https://new.test; if ($http_x = y) { return 403; }`:                           "",
		`if ($nothing = http) { return 301 https://$host$request_uri; }`:                          "",
	} {
		options, _, err := snippet.Options(text)
		if got := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(options), "[{redirected-requests "), "}]"); (err != nil) != (want == "") || want != "" && got != want {
			t.Errorf("%s comes to %v, %v, want %q", text, options, err, want)
		}
	}
}

// TestWholeOrNotAtAll: of a snippet of which anything would be lost, nothing is taken.
func TestWholeOrNotAtAll(t *testing.T) {
	for text, want := range map[string]string{
		`more_set_headers "X-A: a"; return 403;`:                                          "it is not about fields",
		`add_header X-A a; add_header X-A b;`:                                             "said twice",
		`auth_request_set $c $upstream_http_set_cookie; add_header Set-Cookie $c always;`: "$c is not known",
		`add_header Set-Cookie a=b;`:                                                      "in the place of the backend's own",
		`proxy_set_header Host inner.test;`:                                               "no option of one Ingress does the same",
		`proxy_set_header X-A $nothing;`:                                                  "$nothing is not known",
		`proxy_set_header X-A $user; auth_request_set $u $x;`:                             "$user is not known",
		`more_clear_headers $name;`:                                                       "has a variable",
		`add_header X-A { a b; }`:                                                         "its block is not read",
		`add_header;`:                                                                     "it has no arguments",
		`proxy_cache zone;`:                                                               "nothing is kept here",
		`proxy_http_version 1.0;`:                                                         "no option of one Ingress does the same",
		`proxy_ssl_name $http_x;`:                                                         "$host and $server_name alone",
		`default_type text/html;`:                                                         "beside direct-response",
		`if ($nothing) { return 403; }`:                                                   "it is not about fields",
		`if ($host = a) { return 403; } rewrite ^ /b;`:                                    "it is not about fields",
		`allow 10.0.0.0/8;`:                                                               "and then deny all",
		`deny all;`:                                                                       "and then deny all",
		`deny 10.0.0.1; allow 10.0.0.0/8; deny all;`:                                      "and then deny all",
		`deny all; allow 10.0.0.0/8;`:                                                     "and then deny all",
		`allow all; deny all;`:                                                            "and then deny all",
		`allow 10.0.0.0/8; deny all; deny all;`:                                           "and then deny all",
		`if ($host = a) { more_set_headers "X-A: a"; }`:                                   "it is not about fields",
		`more_set_headers "X-A: a"`:                                                       "does not end",
	} {
		if options, _, err := snippet.Options(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s comes to %v, %v, want %q", text, options, err, want)
		}
	}
	for _, text := range []string{"# nothing\n", "auth_request_set $c $upstream_http_set_cookie;\nadd_header Set-Cookie $c;", `etag on; proxy_pass_header ETag;`, `proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; proxy_http_version 1.1; proxy_cache off; proxy_cache_bypass $http_upgrade;`} {
		if options, _, err := snippet.Options(text); err != nil || len(options) > 0 {
			t.Errorf("%s comes to %v, %v", text, options, err)
		}
	}
}

// TestHostOptions: of a server-snippet nothing counts that the paths of the host have their own
// of.
func TestHostOptions(t *testing.T) {
	for text, want := range map[string]string{
		"location /metrics { deny all; }\nlocation ~* \\.(git|env) { return 404; access_log off; }":  "[] [/metrics ~* \\.(git|env) 404]",
		"location = /x { return 444; } location ^~ /y/ { deny all; return 401; } server_tokens off;": "[] [= /x /y/ 401]",
		"# nothing":         "[] []",
		"add_header X-A a;": "[{response-headers X-A: a}] []",
		"if ($host = a) { return 403; } location = /dav { return 301 $scheme://$host/remote.php/dav; }": "[{denied-requests $host = a} {redirected-requests $uri = /dav $scheme://$host/remote.php/dav 301}] []",
		"proxy_set_header X-A a;":                   "of a host is not that of its paths",
		"access_log off;":                           "of a host is not that of its paths",
		"location /x { deny 10.0.0.0/8; }":          "neither refuses nor redirects",
		"location /x { deny all; } return 403;":     "line 1, return 403: it is not",
		"location @x { return 403; }":               "neither refuses nor redirects",
		"location /x { allow all; }":                "neither refuses nor redirects",
		"rewrite ^/a /b break;":                     "neither refuses nor redirects",
		"location /x { return 301 /y; }":            "neither refuses nor redirects",
		"location /x { return 403; ":                "does not end",
		"location x { return 403; }":                "neither refuses nor redirects",
		"location /x { return 403; proxy_pass a; }": "neither refuses nor redirects",
	} {
		options, denied, err := snippet.HostOptions(text)
		got := fmt.Sprint(options, denied)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || strings.HasPrefix(want, "[") != (err == nil) {
			t.Errorf("%s comes to %s, want %s", text, got, want)
		}
	}
}

// TestDenialsThatWin: nginx refuses where no path of the Ingress comes first.
func TestDenialsThatWin(t *testing.T) {
	paths := []snippet.Path{{Path: "/"}, {Path: "/metrics/public"}, {Path: "/exact", Exact: true}}
	for _, c := range []struct {
		denial   snippet.Denial
		patterns bool
		wins     bool
	}{
		{snippet.Denial{What: "/api"}, false, true},
		{snippet.Denial{What: "/api"}, true, false},
		{snippet.Denial{What: "/metrics"}, false, false},
		{snippet.Denial{What: "/metrics/public/x"}, false, true},
		{snippet.Denial{What: "/metrics/public"}, false, true},
		{snippet.Denial{What: "/ex"}, false, false},
		{snippet.Denial{Modifier: "~", What: "public"}, true, true},
		{snippet.Denial{Modifier: "~*", What: "^/EXACT$"}, false, false},
		{snippet.Denial{Modifier: "=", What: "/exact"}, false, false},
		{snippet.Denial{Modifier: "=", What: "/metrics/public"}, true, true},
	} {
		if c.denial.Wins(paths, c.patterns) != c.wins {
			t.Errorf("%s beside %v, patterns %v: wins is not %v", c.denial, paths, c.patterns, c.wins)
		}
	}
}

// TestFieldsIn: a variable is named by the field that it stands for, and no other text changes.
func TestFieldsIn(t *testing.T) {
	fields := snippet.FieldsOf([]snippet.AuthAnswer{{Variable: "user", Field: "x-user"}, {Variable: "user_id", Field: "x-id"}, {Variable: "http_x", Field: "x-user"}})
	for text, want := range map[string]string{
		"$user":                 "$http_x_user",
		"a${user}b$user_id.c":   "a$http_x_userb$http_x_id.c",
		"$username $users ${us": "$username $users ${us",
		"$$user$":               "$$http_x_user$",
		"${user":                "${user",
		"$http_x_user":          "$http_x_user",
		"$http_x":               "$http_x_user",
		"user":                  "user",
	} {
		if got := fields.In(text, "http_"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestHostileSnippet: anybody may write as many variables as there is room for, and words that
// have them. To look for each of them in each word took 13 s.
func TestHostileSnippet(t *testing.T) {
	var text strings.Builder
	for i := range 250 {
		fmt.Fprintf(&text, "auth_request_set $a%d $upstream_http_b;", i)
	}
	for range 250 {
		text.WriteString("x" + strings.Repeat(" $a", 60) + ";")
	}
	if _, _, err := snippet.Options(text.String()); err == nil || !strings.Contains(err.Error(), "it is not about fields") {
		t.Error(err)
	}
}
