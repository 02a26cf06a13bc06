package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
)

const prefix = route.OwnPrefix

// TestSnippetLines: what is said of each directive.
func TestSnippetLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`add_header X-Frame-Options "DENY" always;`, prefix + `response-headers: "X-Frame-Options: DENY" (a line for each field, which is set in the place of one that is there)`},
		{`more_set_headers "X-A: 1" "X-B: 2";`, prefix + `response-headers: "X-A: 1\nX-B: 2" (a line for each field, which is set in the place of one that is there)`},
		{`more_set_headers "X-A: 1" "X B: 2";`, "has no equivalent: it is not a field of HTTP"},
		{`add_header Set-Cookie "a=b";`, "has no equivalent: fields are set here in the place of the backend's own"},
		{`more_set_headers "Vary: X";`, prefix + `response-headers: "Vary: X"`},
		{`more_set_headers "Server:";`, prefix + `response-headers: "Server:"`},
		{`more_set_headers -s 404 "X-A: 1";`, "has no equivalent: fields are set whatever the status"},
		{`add_header X-Id $request_id;`, prefix + `response-headers: "X-Id: $request_id"`},
		{`add_header X-Id $nothing;`, "has no equivalent: variable $nothing is not known"},
		{`add_header Access-Control-Allow-Origin $http_origin always;`, prefix + `response-headers: "Access-Control-Allow-Origin: $http_origin" (a line for each field, which is set in the place of one that is there; enable-cors`},
		{`add_header Access-Control-Allow-Origin *;`, prefix + `response-headers: "Access-Control-Allow-Origin: *"`},
		{`add_header Strict-Transport-Security "max-age=1";`, prefix + `response-headers: "Strict-Transport-Security: max-age=1"`},
		{`proxy_hide_header X-Powered-By;`, prefix + `response-headers: "X-Powered-By:"`},
		{`return 301 https://new.example/x;`, prefix + `permanent-redirect: "https://new.example/x"`},
		{`return 308 https://new.example;`, prefix + `permanent-redirect: "https://new.example", ` + prefix + `permanent-redirect-code: "308"`},
		{`return https://new.example;`, prefix + `temporal-redirect: "https://new.example"`},
		{`return 301 https://$host$request_uri;`, prefix + `force-ssl-redirect: "true"`},
		{`return 301 https://new.example$request_uri;`, prefix + `permanent-redirect: "https://new.example$request_uri"`},
		{`return 302 /new;`, prefix + `temporal-redirect: "/new"`},
		{`return 302 new;`, `has no equivalent: "new" is neither a path`},
		{`return 301 https://$arg_to/;`, "has no equivalent: $arg_to may not decide which host is meant"},
		{`proxy_cookie_path / "/; HttpOnly; Secure";`, prefix + `proxy-cookie-path: "/ \"/; HttpOnly; Secure\""`},
		{`proxy_cookie_domain inner.test $host;`, prefix + `proxy-cookie-domain: "inner.test $host"`},
		{`proxy_redirect http://inner.test/ $scheme://$host/;`, prefix + `proxy-redirect-to: "$scheme://$host/"`},
		{`return 200 "ok";`, prefix + `direct-response: "200 ok" (behind the guards`},
		{`return 404;`, prefix + `direct-response: "404"`},
		{`return 200 "";`, prefix + `direct-response: "200"`},
		{"return 200 'User-agent: *\nDisallow: /\n';", prefix + `direct-response: "200 User-agent: *\nDisallow: /\n"`},
		{`return 200 "User-agent: *\nDisallow: /\n";`, prefix + `direct-response: "200 User-agent: *\nDisallow: /\n"`},
		{`return 403 "go away";`, prefix + `direct-response: "403 go away"`},
		{`return 200 $remote_addr;`, prefix + `direct-response: "200 $remote_addr"`},
		{`return 200 $nothing;`, "has no equivalent: variable $nothing is not known"},
		{`return 304;`, prefix + `direct-response: "304"`},
		{`return 308;`, "has no equivalent: it names no address"},
		{`location = /healthz { return 200 "ok"; add_header Content-Type text/plain; access_log off; }`, prefix + `direct-response: "200 ok", ` + prefix + `response-headers: "Content-Type: text/plain", ` + prefix + `enable-access-log: "false" (`},
		{`return 403;`, prefix + `denylist-source-range: "0.0.0.0/0,::/0"`},
		{`rewrite ^/api/(.*)$ /$1 break;`, prefix + `use-regex: "true", ` + prefix + `rewrite-target: "/$1" (in an Ingress of its own with pathType: ImplementationSpecific and the path "/api/(.*)$")`},
		{`rewrite ^/old https://new.example/ permanent;`, prefix + `permanent-redirect: "https://new.example/"`},
		{`rewrite ^/dav /remote/dav redirect;`, prefix + `temporal-redirect: "/remote/dav" (in an Ingress of its own`},
		{`rewrite ^/old/(.*)$ https://new.example/$1 permanent;`, prefix + `permanent-redirect: "https://new.example/$1" (in an Ingress of its own with pathType: ImplementationSpecific and the path "/old/(.*)$" and use-regex)`},
		{`rewrite (.*)\.php /$1;`, "has no equivalent: patterns match from the beginning"},
		{`rewrite ^/x /$http_x break;`, prefix + `rewrite-target: "/$http_x"`},
		{`rewrite ^/x /$nothing break;`, "has no equivalent: variable $nothing is not known"},
		{`proxy_set_header Host $service_name.inner;`, prefix + `upstream-vhost: "$service_name.inner"`},
		{`proxy_set_header Host $http_x;`, "has no equivalent: $http_x may not stand in a host"},
		{`proxy_set_header X-Start $nothing;`, "has no equivalent: variable $nothing is not known"},
		{`proxy_set_header Host inner.test;`, prefix + `upstream-vhost: "inner.test"`},
		{`proxy_set_header Host $host;`, "nothing to write: the Host of the client"},
		{`proxy_set_header X-Forwarded-Prefix /app;`, prefix + `x-forwarded-prefix: "/app"`},
		{`proxy_set_header X-Real-IP $remote_addr;`, "nothing to write: it is sent unasked"},
		{`proxy_set_header Upgrade $http_upgrade;`, "nothing to write: a WebSocket"},
		{`proxy_set_header X-Server https://x.example;`, prefix + `request-headers: "X-Server: https://x.example"`},
		{`proxy_set_header Accept-Encoding "";`, prefix + `request-headers: "Accept-Encoding:"`},
		{`allow 10.0.0.0/8;`, prefix + `allowlist-source-range: "10.0.0.0/8"`},
		{`deny 10.0.0.1;`, prefix + `denylist-source-range: "10.0.0.1"`},
		{`deny all;`, prefix + `denylist-source-range: "0.0.0.0/0,::/0"`},
		{`allow everybody;`, "has no equivalent: everybody is not an address"},
		{`client_max_body_size 50m;`, prefix + `proxy-body-size: "50m"`},
		{`proxy_read_timeout 1h;`, prefix + `proxy-read-timeout: "3600"`},
		{`proxy_send_timeout 300;`, prefix + `proxy-send-timeout: "300"`},
		{`proxy_connect_timeout 500ms;`, "has no equivalent: 500ms is not a time in whole seconds"},
		{`proxy_buffering off;`, "nothing to write: bodies are streamed"},
		{`proxy_request_buffering on;`, prefix + `proxy-request-buffering: "on"`},
		{`proxy_request_buffering off;`, "nothing to write: requests are streamed"},
		{`limit_rate 2m;`, prefix + `limit-rate: "2048"`},
		{`limit_rate_after 500k;`, prefix + `limit-rate-after: "500"`},
		{`limit_rate 1000;`, "has no equivalent: 1000 is not a size in whole KiB"},
		{`limit_rate $rate;`, "has no equivalent: $rate has a variable"},
		{`proxy_http_version 1.0;`, prefix + `proxy-http-version: "1.0"`},
		{`proxy_http_version 1.1;`, "nothing to write: backends are spoken to in HTTP/1.1"},
		{`client_body_buffer_size 128k;`, prefix + `client-body-buffer-size: "128k"`},
		{`large_client_header_buffers 4 16k;`, `large-client-header-buffers: "4 16k"`},
		{`keepalive_timeout 75s;`, `keep-alive: "75s"`},
		{`client_header_timeout 10s;`, `client-header-timeout: "10s"`},
		{`client_body_timeout 10;`, `client-body-timeout: "10"`},
		{`access_log off;`, prefix + `enable-access-log: "false"`},
		{`access_log /var/log/x.log main;`, "nothing to write: the log goes to the standard output"},
		{`access_log /var/log/x.log main if=$loggable;`, "nothing to write: the log goes to the standard output"},
		{`access_log /var/log/x.log main if=$other;`, "has no equivalent: which requests are logged $loggable says"},
		{`server_name _ a.test b.test;`, prefix + `server-alias: "a.test,b.test"`},
		{`server_name _;`, "nothing to write: no host has that name"},
		{`proxy_ssl_protocols TLSv1.2 TLSv1.3;`, prefix + `proxy-ssl-protocols: "TLSv1.2 TLSv1.3"`},
		{`ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256;`, prefix + `ssl-ciphers: "ECDHE-RSA-AES128-GCM-SHA256"`},
		{`ssl_protocols TLSv1.2 TLSv1.3;`, `ssl-protocols: "TLSv1.2 TLSv1.3"`},
		{`proxy_ssl_verify on;`, prefix + `proxy-ssl-verify: "on"`},
		{`proxy_ssl_verify_depth 2;`, prefix + `proxy-ssl-verify-depth: "2"`},
		{`proxy_ssl_name inner.test;`, prefix + `proxy-ssl-name: "inner.test"`},
		{`proxy_ssl_server_name on;`, prefix + `proxy-ssl-server-name: "on"`},
		{`proxy_ssl_ciphers HIGH:!aNULL;`, prefix + `proxy-ssl-ciphers: "HIGH:!aNULL"`},
		{`proxy_ssl_protocols TLSv1.2 TLSv1.3;`, prefix + `proxy-ssl-protocols: "TLSv1.2 TLSv1.3"`},
		{`modsecurity on;`, prefix + `enable-modsecurity: "true" (where the chart's values have proxy.modsecurity)`},
		{`gzip on;`, `use-gzip: "true" (for all Ingresses)`},
		{`if ($host = "www.a.test") { return 301 https://a.test/; }`, prefix + `redirected-requests: "$host = www.a.test https://a.test/ 301"`},
		{`if ($http_x_forwarded_proto = 'http') { return 301 https://$host$request_uri; }`, prefix + `redirected-requests: "$http_x_forwarded_proto = http https://$host$request_uri 301"`},
		{`if ($scheme = http) { return 301 https://$host$request_uri; }`, prefix + `force-ssl-redirect: "true"`},
		{`if ($http_user_agent ~* (bot|spider)) { return 403; }`, prefix + `denied-requests: "$http_user_agent ~* (bot|spider)"`},
		{`if ($request_method = OPTIONS) { return 204; }`, prefix + `enable-cors: "true"`},
		{`if ($cookie_a) { return 403; }`, prefix + `denied-requests: "$cookie_a !~ ^0?$"`},
		{`if ($host = a) { set $x 1; return 403; }`, "has no equivalent: it does several things"},
		{`location /x { deny all; }`, prefix + `denied-paths: "/x"`},
		{`location ^~ /x { deny all; return 404; }`, prefix + `denied-paths: "/x 404"`},
		{`location ~* "^/metrics" { access_log off; log_not_found off; return 444; }`, prefix + `denied-paths: "~* ^/metrics"`},
		{`location /x { deny all; allow 10.0.0.0/8; }`, prefix + `denylist-source-range: "0.0.0.0/0,::/0", ` + prefix + `allowlist-source-range: "10.0.0.0/8" (with all that is allowed in one list; in an Ingress of its own with pathType: Prefix and the path "/x")`},
		{`location = /.well-known/caldav { return 301 $scheme://$host/remote.php/dav; }`, prefix + `permanent-redirect: "$scheme://$host/remote.php/dav" (in an Ingress of its own with pathType: Exact and the path "/.well-known/caldav")`},
		{`location ~ ^/(?:build|data)/ { deny all; access_log off; }`, prefix + `denied-paths: "~ ^/(?:build|data)/"`},
		{`location ~ ^/(?:build|data)/ { allow 10.0.0.0/8; deny all; }`, prefix + `allowlist-source-range: "10.0.0.0/8" (with all that is allowed in one list; in an Ingress of its own with pathType: ImplementationSpecific and use-regex: "true" and the path "/(?:build|data)/")`},
		{`location = /robots.txt { allow all; log_not_found off; access_log off; }`, "nothing to write: everybody passes who is not refused"},
		{`location /x { proxy_set_header A b; add_header C d; add_header E f; }`, prefix + `request-headers: "A: b", ` + prefix + `response-headers: "C: d\nE: f" (a line for each field, which is set in the place of one that is there; in an Ingress of its own with`},
		{`location ~ /x { deny 10.0.0.0/8; }`, "has no equivalent: rules match from the beginning"},
		{`location @x { return 403; }`, "has no equivalent: rules match from the beginning"},
		{`location /x { proxy_pass http://y; }`, "has no equivalent: of proxy_pass http://y;: the Service is what a rule names as its backend"},
		{`location !~ /x y { }`, "has no equivalent: it has more than a modifier and a path"},
		{`map $x $y { a b; }`, "has no equivalent: no option does what map does"},
		{`auth_request_set $name_upstream_1 $upstream_cookie_name_1;`, "nothing to write: every Set-Cookie of auth-url is passed on"},
		{`auth_request_set $c $upstream_http_set_cookie;`, "nothing to write: every Set-Cookie of auth-url is passed on"},
		{`auth_request_set $user $upstream_http_x_auth_request_user;`, prefix + `auth-response-headers: "X-Auth-Request-User" (with all of them in one list`},
		{`auth_request_set $status $upstream_status;`, "has no equivalent: only fields of the answer are passed on"},
		{`auth_request_set $x;`, "has no equivalent: only fields of the answer"},
		{`access_by_lua_block { if x then ngx.exit("}") end }`, "Lua is never executed"},
		{`proxy_cookie_flags ~ secure samesite=strict;`, prefix + `proxy-cookie-flags: "~ secure samesite=strict"`},
		{`proxy_cookie_flags off;`, "nothing to write: flags are left"},
		{`proxy_cookie_flags a;`, "has no equivalent: it names no flags"},
		{`expires 30d;`, prefix + `success-headers: "Cache-Control: max-age=2592000" (a line for each field`},
		{`expires -1;`, prefix + `success-headers: "Cache-Control: no-cache"`},
		{`expires max;`, prefix + `success-headers: "Cache-Control: max-age=315360000"`},
		{`expires off;`, "nothing to write: nothing is said of it unasked"},
		{`expires modified +24h;`, "has no equivalent: the age of a file is not known here"},
		{`expires @15h;`, "has no equivalent: @15h is not a time in whole seconds"},
		{`add_header Cache-Control "public, max-age=60";`, prefix + `success-headers: "Cache-Control: public, max-age=60"`},
		{`add_header Cache-Control no-store always;`, prefix + `response-headers: "Cache-Control: no-store" (a line`},
		{`default_type application/json;`, prefix + `response-headers: "Content-Type: application/json" (beside direct-response`},
		{`default_type text/plain;`, "nothing to write: that is what direct-response sends"},
		{`more_set_input_headers "X-A: $host" "X-B: b";`, prefix + `request-headers: "X-A: $host\nX-B: b"`},
		{`more_set_input_headers -r "X-A: a";`, "has no equivalent: fields are set whether"},
		{`more_set_input_headers "X A: a";`, "has no equivalent: it is not a field of HTTP"},
		{`more_clear_input_headers Authorization X-B;`, prefix + `request-headers: "Authorization:\nX-B:"`},
		{`more_clear_input_headers "X B";`, "has no equivalent: it is not a field of HTTP"},
		{`grpc_set_header X-A $remote_addr;`, prefix + `request-headers: "X-A: $remote_addr"`},
		{`grpc_read_timeout 1h;`, prefix + `proxy-read-timeout: "3600"`},
		{`set_real_ip_from 10.0.0.0/8;`, `proxy-real-ip-cidr: "10.0.0.0/8"`},
		{`real_ip_header CF-Connecting-IP;`, `forwarded-for-header: "CF-Connecting-IP"`},
		{`keepalive_requests 100;`, `keep-alive-requests: "100"`},
		{`proxy_ssl_certificate /etc/x.pem;`, prefix + `proxy-ssl-secret: "" (NAMESPACE/NAME of the Secret`},
		{`limit_req zone=a burst=5;`, "has no equivalent: limit-rps, limit-rpm"},
		{`proxy_ignore_headers Cache-Control;`, "nothing to write: no such field of a backend's steers the proxy"},
		{`proxy_ignore_headers Expires x-accel-redirect;`, "has no equivalent: x-accel-redirect of a backend is obeyed"},
		{`proxy_pass_header Server;`, "nothing to write: the backend's fields are passed on"},
		{`proxy_pass_header X-Accel-Redirect;`, "has no equivalent: clients are not shown what steers the proxy"},
		{`sub_filter a b;`, "no option does what sub_filter does; a snippet of it alone is obeyed"},
	} {
		notes := snippetNotes("configuration-snippet", c.text)
		if len(notes) == 0 || !strings.Contains(notes[0], c.want) || !strings.HasPrefix(notes[0], "configuration-snippet line 1, ") {
			t.Errorf("%s\n got %q\nwant %q", c.text, notes, c.want)
		}
		list, _ := nginxconf.Parse(c.text)
		if len(list) > 0 {
			acts(t, c.text, adviceOn(&list[0], false))
		}
	}
	notes := snippetNotes("server-snippet", "# first\nallow 10.0.0.0/8; deny 11.0.0.0/8;\n\ndeny all;\nadd_header A \"b\nc\";\nreturn 403;")
	for i, want := range []string{"line 2, allow", "line 2, deny 11.0.0.0/8;: has no equivalent: denylist-source-range comes before", "line 4, deny all;: nothing to write", "line 5, add_header", "line 7, return 403;"} {
		if i >= len(notes) || !strings.Contains(notes[i], want) {
			t.Fatalf("note %d is not about %q: %q", i, want, notes)
		}
	}
}

// acts holds advice to the proxy's own tables: an option that it names must act.
func acts(t *testing.T, text string, a advice) {
	t.Helper()
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "i", Annotations: map[string]string{}}}
	for _, o := range a.Options {
		if o.Value != "" { // it is to be filled in
			ing.Annotations[prefix+o.Key] = o.Value
		}
		if o.Key == "auth-response-headers" { // which is told of beside auth-url
			ing.Annotations[prefix+"auth-url"] = "http://auth.example/"
		}
	}
	ing.Spec = oneRule()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "wide"}, Data: map[string]string{}}
	for _, o := range a.Global {
		cm.Data[o.Key] = o.Value
	}
	for _, p := range route.Compile(snapshot.Of(ing, service, cm), nil, route.Options{ConfigMap: snapshot.KeyOf(cm), ModSecurity: true}).Problems {
		t.Errorf("%s: what is named instead does not act: %s", text, p.Message)
	}
}

func TestSnippetsThatAreNotUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"return 403 ":                    "line 1: a directive does not end in a semicolon",
		"a;\nb 'c":                       "line 2: a word does not end",
		"}":                              `line 1: there is a '}' where`,
		"{}":                             `line 1: there is a '{' where`,
		"if (a) { b;":                    "line 1: a block does not end",
		`add_header "a"b;`:               "something follows a quote",
		"a \x00;":                        "control character",
		strings.Repeat("a{", 9):          "deeper than 8",
		strings.Repeat("a;", 501):        "more than 500 directives",
		strings.Repeat("a ", 65) + ";":   "more than 64 words",
		strings.Repeat("a;", 40_000):     "bytes, more than",
		"x_by_lua_block { \n{ }":         "line 2: a block does not end",
		"add_header A b; } return 403; ": `there is a '}' where`,
	} {
		notes := snippetNotes("configuration-snippet", text)
		if len(notes) == 0 || !strings.Contains(notes[len(notes)-1], want) {
			t.Errorf("%.40q: %.200q, want %q", text, fmt.Sprint(notes), want)
		}
	}
}

// FuzzSnippet: whatever a snippet holds, as much is said of it as it has directives, and an
// Ingress that comes of it is one that the proxy understands.
func FuzzSnippet(f *testing.F) {
	for _, s := range []string{"if ($host = a) { return 301 https://b/; }", `add_header A "b\"c";`, "rewrite ^/(.*)$ /$1 break; # x", "proxy_redirect ~^(.*)$ /;", "a${b}c;", "error_page 404;",
		"location = /x { default_type a/b; return 200 $uri; }", "rewrite ^(/a)$ $1/ redirect;", "proxy_cookie_flags ~ secure;", "expires 1d;", "location = { }", "location;", "location {}", "default_type;",
		"location /a { deny all; }", `location ~* \.git { return 404; }`, "rewrite ^/a /b last; rewrite ^/c /d?e break;", "proxy_hide_header A; add_header B c;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		notes := snippetNotes("configuration-snippet", text)
		if list, err := nginxconf.Parse(text); len(notes) < len(list) || len(notes) > len(list)+1 || err != nil && len(notes) == 0 {
			t.Errorf("%d notes of %d directives, %v", len(notes), len(list), err)
		}
		for _, n := range notes {
			if len(n) > 64<<10+1000 {
				t.Errorf("a note of %d bytes", len(n))
			}
		}
		for _, key := range []string{"configuration-snippet", "server-snippet"} {
			spec := oneRule()
			meta, beside, _ := withoutSnippets(Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + key: text, prefix + "whitelist-source-range": "10.0.0.0/8"}}, spec, true)
			if _, stays := meta.Annotations[prefix+key]; !stays && len(judge(meta, spec)) > 0 {
				t.Errorf("%q: %q", meta.Annotations, judge(meta, spec))
			}
			for _, o := range beside {
				if wrong := judge(o.Metadata, o.Spec.(networkingv1.IngressSpec)); len(wrong) > 0 {
					t.Errorf("%v: %q", o, wrong)
				}
				if said := o.Metadata.Annotations; said[prefix+"rewrite-target"] != "" && said[prefix+"whitelist-source-range"] == "" {
					t.Errorf("%v: what it rewrites is not guarded", o)
				}
			}
		}
	})
}

// oneRule leads all of a host to a Service.
func oneRule() networkingv1.IngressSpec {
	class, any := "quayside", networkingv1.PathTypeImplementationSpecific
	web := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	return networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: "a.test", IngressRuleValue: networkingv1.IngressRuleValue{
		HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &any, Backend: web}}}}}}}
}

// A snippet of nothing but fields becomes options, and any other stays whole.
func TestSnippetsOfFields(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"proxy_set_header X-A $host; # why\nmore_set_headers 'X-B: b' 'X-C:';\nadd_header X-D d always;\nproxy_buffering off;": {
			"request-headers": "X-A: $host", "response-headers": "X-B: b\nX-C:\nX-D: d",
		},
		"add_header Strict-Transport-Security 'max-age=1';\nadd_header Access-Control-Allow-Origin $http_origin;": {
			"response-headers": "Strict-Transport-Security: max-age=1\nAccess-Control-Allow-Origin: $http_origin",
		},
		"proxy_cookie_flags ~ secure;\nproxy_cookie_flags a nosecure;\naccess_log off;": {
			"proxy-cookie-flags": "~ secure\na nosecure", "enable-access-log": "false",
		},
		"proxy_ssl_name inner.test;\nproxy_ssl_server_name on;":     {"proxy-ssl-name": "inner.test", "proxy-ssl-server-name": "on"},
		"proxy_cookie_path /a /b;\nproxy_cookie_path /c /d;":        nil,
		"proxy_cookie_flags a partitioned;":                         nil,
		"add_header X-A a;\nexpires 1h;\nadd_header Pragma public;": {"response-headers": "X-A: a", "success-headers": "Cache-Control: max-age=3600\nPragma: public"},
		"expires 1h;\nadd_header Cache-Control public;":             nil,
		"add_header X-A a;\nadd_header x-a b;":                      nil,
		"add_header X-A a;\ndeny 10.0.0.1;":                         nil,
		"add_header X-A a;\nadd_header Set-Cookie b=c;":             nil,
		"more_set_headers 'X-A: a' 'X B: b';":                       nil,
		"add_header X-A a;\nproxy_read_timeout 5;":                  nil,
		"add_header X-A a;\nlocation /x { add_header B b; }":        nil,
		"add_header X-A a;\nif (-f x) { return 403; }":              nil,
		"add_header X-A a;\nadd_header":                             nil,
		"proxy_buffering off;":                                      {},
		"":                                                          nil,
	} {
		given := Meta{Name: "i", Annotations: map[string]string{prefix + "configuration-snippet": text, prefix + "response-headers": "X-Own: own"}}
		meta, _, notes := withoutSnippets(given, oneRule(), false)
		out := meta.Annotations
		_, stays := out[prefix+"configuration-snippet"]
		if stays != (want == nil) || len(notes) > 0 != (want != nil) {
			t.Errorf("%q: %v, %v", text, out, notes)
		}
		for key, value := range want {
			if key == "response-headers" {
				value = "X-Own: own\n" + value
			}
			if got := out[prefix+key]; got != value {
				t.Errorf("%q: %s is %q, want %q", text, key, got, value)
			}
		}
	}
}

// A snippet that refuses paths becomes denied-paths, and stays whole where that would refuse
// more than it did.
func TestSnippetsThatRefuse(t *testing.T) {
	exact, spec := networkingv1.PathTypeExact, shopPaths("/", "/open/metrics", "/admin/public")
	spec.Rules[0].HTTP.Paths[1].PathType = &exact
	for _, c := range []struct{ text, want string }{
		{"location /metrics { deny all; return 403; }", "/metrics"},
		{"location ~ /\\.git { deny all; }\nlocation ~* /realms/[^/]+/metrics { return 404; }\nserver_tokens off;", "~ /\\.git\n~* /realms/[^/]+/metrics 404"},
		{"location ~ ^/.*/s/prometheus$ {return 403;}\nlocation = /robots.txt { return 410; }", "~ ^/.*/s/prometheus$"},
		{"location ~ ^/robots { deny all; }\nlocation = /robots.txt { return 410; }", ""},
		{"location /admin { deny all; }", ""},             // nginx takes the longer /admin/public
		{"location ~ metrics$ { deny all; }", ""},         // and the Exact path
		{"location ~ (?!x) { deny all; }", ""},            // no pattern of RE2
		{"location /x { deny all; allow 10.0.0.1; }", ""}, // not everybody
		{"location /x { location /y { deny all; } }", ""},
		{"location /x { deny all; }\nadd_header A b;", ""},
	} {
		for _, key := range []string{"server-snippet", "configuration-snippet"} {
			if key == "configuration-snippet" && strings.Contains(c.text, "add_header") {
				continue // where that is replaced, too
			}
			given := Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + key: c.text, prefix + "denied-paths": "/own"}}
			meta, _, notes := withoutSnippets(given, spec, false)
			_, stays := meta.Annotations[prefix+key]
			if got := meta.Annotations[prefix+"denied-paths"]; got != strings.TrimSuffix("/own\n"+c.want, "\n") || stays != (c.want == "") {
				t.Errorf("%s %q comes to %q, stays %v: %q", key, c.text, got, stays, notes)
			}
		}
	}
	patterns := Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + "server-snippet": "location /x { deny all; }", prefix + "use-regex": "true"}}
	if meta, _, _ := withoutSnippets(patterns, spec, false); meta.Annotations[prefix+"denied-paths"] != "" {
		t.Error("what the patterns of a host come before is refused")
	}
}

// A snippet that answers single paths itself becomes Ingresses for these, and stays whole
// where one of them would not do the same.
func TestSnippetsOfPlaces(t *testing.T) {
	exact, below := networkingv1.PathTypeExact, networkingv1.PathTypePrefix
	web := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	paths := func(list ...networkingv1.HTTPIngressPath) networkingv1.IngressRuleValue {
		return networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: list}}
	}
	class := "quayside"
	spec := networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{
		{Host: "a.test", IngressRuleValue: paths(networkingv1.HTTPIngressPath{Path: "/", PathType: &below, Backend: web})},
		{Host: "b.test", IngressRuleValue: paths(networkingv1.HTTPIngressPath{Path: "/own", PathType: &exact, Backend: web})},
		{Host: "b.test", IngressRuleValue: paths(networkingv1.HTTPIngressPath{Path: "/", PathType: &below, Backend: web})},
	}}
	for _, c := range []struct {
		key, text string
		want      []string // "/path key=value ..."; nil: the snippet stays
	}{
		{"server-snippet", "location = /metrics { return 404; }", []string{"/metrics direct-response=404"}},
		{"server-snippet", "underscores_in_headers on;\nlocation = /m { deny all; access_log off; }\nlocation = /callback { return 301 /auth/callback$is_args$args; }",
			[]string{"/m denylist-source-range=0.0.0.0/0,::/0 enable-access-log=false", "/callback permanent-redirect=/auth/callback$is_args$args"}},
		{"server-snippet", `location = /ip { default_type application/json; return 200 '{"ip":"$remote_addr"}'; }`,
			[]string{`/ip direct-response=200 {"ip":"$remote_addr"} response-headers=Content-Type: application/json`}},
		{"server-snippet", "rewrite ^(/dashboard)$ $1/ redirect;", []string{"/dashboard temporal-redirect=/dashboard/$is_args$args"}},
		{"server-snippet", `rewrite ^/old\.html$ https://new.test/? permanent; server_tokens off;`, []string{"/old.html permanent-redirect=https://new.test/"}},
		{"server-snippet", "proxy_ssl_verify off;", []string{}},
		{"server-snippet", "add_header X-A a;", nil},
		{"server-snippet", "location = /metrics { return 404; }\nlocation = /x { proxy_pass http://y; }", nil},
		{"server-snippet", "location = /x { add_header A b; }", nil},
		{"server-snippet", "location = /x { deny 10.0.0.1; deny 10.0.0.2; return 404; }", nil},
		{"server-snippet", "location = /x { return 200 x; default_type a/b; add_header Content-Type c/d; }", nil},
		{"server-snippet", "location = /x { return 200 x; default_type a/b $uri; }", nil},
		{"configuration-snippet", "default_type a/b;", nil},
		{"server-snippet", "location = /own { return 404; }", nil},
		{"server-snippet", "location = /x { return 404; expires 1h; }", []string{"/x direct-response=404 success-headers=Cache-Control: max-age=3600"}},
		{"server-snippet", "location = /x { return 301 https://$arg_to/; }", nil},
		{"server-snippet", "location = /x { gzip on; return 404; }", nil},
		{"server-snippet", "rewrite ^(/dash.*)$ $1/ redirect;", nil},
		{"configuration-snippet", "rewrite ^/a /b last;", nil},
	} {
		given := Meta{Namespace: "n", Name: "i", Annotations: map[string]string{prefix + c.key: c.text}}
		meta, beside, notes := withoutSnippets(given, spec, false)
		if _, stays := meta.Annotations[prefix+c.key]; stays != (c.want == nil) || len(notes) > 0 == stays {
			t.Errorf("%q stays %v: %q", c.text, stays, notes)
		}
		var got []string
		for _, o := range beside {
			own := o.Spec.(networkingv1.IngressSpec)
			said := own.Rules[0].HTTP.Paths[0].Path
			for _, key := range slices.Sorted(maps.Keys(o.Metadata.Annotations)) {
				said += " " + strings.TrimPrefix(key, prefix) + "=" + o.Metadata.Annotations[key]
			}
			got = append(got, said)
			if len(own.Rules) != 2 || own.Rules[0].Host != "a.test" || own.Rules[1].Host != "b.test" || *own.Rules[1].HTTP.Paths[0].PathType != exact {
				t.Errorf("%q: rules %v", c.text, own.Rules)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q comes to %q, want %q", c.text, got, c.want)
		}
	}
}
