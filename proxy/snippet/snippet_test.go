package snippet_test

import (
	"fmt"
	"strings"
	"testing"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/snippet"
)

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

// TestLinesOfDirectives: what one directive does alone that decides who passes and where a
// request goes is a line of one option.
func TestLinesOfDirectives(t *testing.T) {
	for text, want := range map[string]string{
		`if ($host = a) { return 403; }`:                                                "denied-requests $host = a",
		`if ($request_method !~ ^(GET|HEAD)$) { return 405; }`:                          "denied-requests $request_method !~ ^(GET|HEAD)$ 405",
		`if ($http_user_agent ~* "bad bot") { return 444; }`:                            `denied-requests $http_user_agent ~* "bad bot"`,
		`if ($nothing) { return 403; }`:                                                 "",
		`if ($uri ~ ^/a) { return 403; }`:                                               "", // a path has many spellings
		`if ($http_x = $http_y) { return 403; }`:                                        "",
		`if ($http_x) { return 404 "not here"; }`:                                       "",
		`rewrite ^/kibana(/|$)(.*) /$2 break;`:                                          "rewritten-paths ^/kibana(/|$)(.*) /$2",
		`rewrite "^/a b" /c? break;`:                                                    `rewritten-paths "^/a b" /c?`,
		`rewrite ^/a /b last;`:                                                          "",
		`rewrite ^ /b;`:                                                                 "",
		`if ($request_method = OPTIONS) { return 204; }`:                                "answered-requests $request_method = OPTIONS 204",
		`location = /c { return 204; }`:                                                 "answered-requests $uri = /c 204",
		"location = /a { default_type a/b; return 200 'x \\y\n\"'; access_log off; }":   `answered-requests $uri = /a 200 a/b "x \\y\n""`,
		`location /a { return 200 b; }`:                                                 "",
		`location = /a { return 200 b; more_set_headers "A: b"; }`:                      "",
		`return 299 $nothing;`:                                                          "",
		`location /metrics { return 404; }`:                                             "denied-paths /metrics 404",
		`location ~ /\.git { deny all; access_log off; }`:                               "denied-paths ~ /\\.git",
		`location ^~ /y/ { deny all; return 401; }`:                                     "denied-paths /y/ 401",
		`location @x { return 403; }`:                                                   "",
		`location /x { allow all; }`:                                                    "",
		`location /x { deny 10.0.0.0/8; }`:                                              "",
		`location /x { return 403; proxy_pass a; }`:                                     "",
		`location x { return 403; }`:                                                    "",
		`rewrite ^(/docs)$ $1/ redirect;`:                                               "redirected-requests $uri ~ ^(/docs)$ $1/$is_args$args",
		`rewrite ^/old/(.*)$ https://new.test/$1? permanent;`:                           "redirected-requests $uri ~ ^/old/(.*)$ https://new.test/$1 301",
		`rewrite ^/old https://new.test/;`:                                              "redirected-requests $uri ~ ^/old https://new.test/$is_args$args",
		`rewrite ^/old $scheme://new.test/ last;`:                                       "redirected-requests $uri ~ ^/old $scheme://new.test/$is_args$args",
		`return 308 https://new.test$request_uri;`:                                      "redirected-requests $uri ~ ^ https://new.test$request_uri 308",
		`return https://new.test;`:                                                      "redirected-requests $uri ~ ^ https://new.test",
		`if ($http_x_forwarded_proto = http) { return 301 https://$host$request_uri; }`: "redirected-requests $http_x_forwarded_proto = http https://$host$request_uri 301",
		`if ($host ~* ^www\.(.*)$) { return 301 https://$1$request_uri; }`:              "redirected-requests $host ~* ^www\\.(.*)$ https://$1$request_uri 301",
		`if ($scheme = http) { rewrite ^(.*)$ https://$host$1 permanent; }`:             "redirected-requests $scheme = http https://$host$uri$is_args$args 301",
		`if ($arg_a) { rewrite ^/(.*)$ https://new.test/$1? redirect; }`:                "redirected-requests $arg_a !~ ^0?$ https://new.test$uri",
		`if ($arg_a) { rewrite ^ https://new.test/$1? redirect; }`:                      "",
		`if ($arg_a) { rewrite ^/(.*)$ https://new.test/a$1 redirect; }`:                "",
		`if ($arg_a) { rewrite ^/old https://new.test/ redirect; }`:                     "",
		`if ($arg_a) { return 301 https://new.test/; access_log off; }`:                 "",
		`rewrite ^/a /b?c=d redirect;`:                                                  "",
		`return 302;`:                                                                   "",
		`return 301 "/a b";`:                                                            "",
		`if ($nothing = http) { return 301 https://$host$request_uri; }`:                "",
	} {
		list, err := nginxconf.Parse(text)
		if err != nil || len(list) != 1 {
			t.Fatal(text, err)
		}
		if got := lineOf(&list[0]); got != want {
			t.Errorf("%s comes to %q, want %q", text, got, want)
		}
	}
}

// lineOf is the option of a directive with its line, or nothing.
func lineOf(d *nginxconf.Directive) string {
	for key, of := range map[string]func(*nginxconf.Directive) (string, bool){
		"denied-requests": snippet.DeniedRequest, "redirected-requests": snippet.RedirectedRequest, "rewritten-paths": snippet.RewrittenPath, "answered-requests": snippet.AnsweredRequest,
		"denied-paths": func(d *nginxconf.Directive) (string, bool) { l, ok := snippet.DeniedPath(d); return l.String(), ok },
	} {
		if line, ok := of(d); ok {
			return key + " " + line
		}
	}
	return ""
}

// TestListsOfAddresses: who is refused comes first, then who passes, and then all.
func TestListsOfAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"allow 10.0.0.0/8; allow ::1; deny all; proxy_buffering off;": "[{allowlist-source-range 10.0.0.0/8,::1}]",
		"deny all;": "[{denylist-source-range 0.0.0.0/0,::/0}]",
		"deny 10.0.0.1; allow 10.0.0.0/8; deny all;": "[{denylist-source-range 10.0.0.1} {allowlist-source-range 10.0.0.0/8}]",
		"deny 10.0.0.1; deny ::1; allow all;":        "[{denylist-source-range 10.0.0.1,::1}]",
		"deny 10.0.0.1;":                             "[{denylist-source-range 10.0.0.1}]",
		"allow 10.0.0.0/8;":                          "",
		"deny all; allow 10.0.0.0/8;":                "",
		"allow all; deny all;":                       "",
		"allow 10.0.0.0/8; deny 10.0.0.1; deny all;": "",
		"allow 10.0.0.0/8; deny all; deny all;":      "",
	} {
		made, err := snippet.Script(text, false, &snippet.Known{})
		switch {
		case want == "":
			if err == nil || !strings.Contains(err.Error(), "then who passes, and then all") {
				t.Errorf("%s: %v", text, err)
			}
		case err != nil || fmt.Sprint(made.Options) != want:
			t.Errorf("%s comes to %v, %v, want %s", text, made, err, want)
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
	if _, err := snippet.Script(text.String(), false, &snippet.Known{}); err == nil || !strings.Contains(err.Error(), "more than 64 variables") {
		t.Error(err)
	}
}
