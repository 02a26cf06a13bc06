package proxy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
)

// logged are the variables whose values are compared.
var logged = []string{
	"request", "status", "remote_addr", "remote_user", "request_method", "request_uri", "uri", "args", "is_args", "query_string", "server_protocol", "scheme", "host", "http_host",
	"request_length", "request_completion", "content_type", "content_length", "http_referer", "http_user_agent", "http_x_forwarded_for", "http_x_own", "http_cookie", "http_none", "proxy_add_x_forwarded_for", "arg_a", "arg_none", "cookie_c",
	"upstream_addr", "upstream_status", "upstream_response_length", "upstream_http_x_said", "sent_http_x_said", "sent_http_location", "https",
}

// TestDrawnLogSameAsNginx draws requests, good ones and such as are refused, and what pods make of
// them, and compares what is logged, with each way to escape.
//
// Not drawn is what this proxy refuses before it reads it; and not compared is what $uri is of a
// path that is rewritten or has an escaped slash in it, and the framing of chunked bodies, which is
// not counted.
func TestDrawnLogSameAsNginx(t *testing.T) {
	for _, escape := range []string{"default", "json"} {
		t.Run(escape, func(t *testing.T) { compareLogs(t, escape) })
	}
}

func compareLogs(t *testing.T, escape string) {
	binary := findNginx(t)
	count, parts := drawn(t)
	draw := logDrawer{parts}
	format := ""
	for _, name := range logged {
		format += "|~|" + name + "=$" + name
	}
	plain, err := accesslog.Named("not yet: $request_uri", nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &logFile{}
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.AccessLog = proxy.AccessLog{Format: plain, Share: 1, To: log}
	})
	options := []string{"upstream-keepalive-connections", "0", "log-format-upstream", format}
	if escape != "default" {
		options = append(options, "log-format-escape-"+escape, "true")
	}
	asked := &attempts{of: map[string]int{}}
	var pods []string
	for range 3 {
		pods = append(pods, acceptEach(t, asked.serve))
	}
	files.Put(podsOf("web", pods...)...)
	files.Put(service("web", corev1.ServicePort{Port: 80}), configMap("wide", options...),
		sameUsersSecret())
	dir := t.TempDir()
	users, file, theirs := filepath.Join(dir, "users"), filepath.Join(dir, "log"), freeAddress(t)
	if err := os.WriteFile(users, []byte(sameUsers), 0o644); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf("log_format f escape=%s '%s';\n", escape, format) + upstreamOf(pods)
	class := ingressclass.NginxName
	cases := []sameCase{
		{},
		{with: map[string]string{"rewrite-target": "/in/$1", "use-regex": "true", "path": "/(.*)"}, inside: `rewrite "(?i)/(.*)" /in/$1 break;`},
		{with: map[string]string{"auth-type": "basic", "auth-secret": "users"}, inside: "auth_basic x; auth_basic_user_file " + users + ";"},
		{with: map[string]string{"permanent-redirect": "https://new.test/at"}, inside: "return 301 https://new.test/at;"},
		{with: map[string]string{"denylist-source-range": "127.0.0.1"}, inside: "deny 127.0.0.1;"},
	}
	for i, c := range cases {
		ing := annotated(fmt.Sprint("i", i), hostOfCase(i), c.with)
		ing.Spec.IngressClassName = &class
		files.Put(ing)
		conf += fmt.Sprintf("server { listen %s; server_name %s; access_log %s f; location / { proxy_http_version 1.1; proxy_set_header Connection \"\"; %s proxy_pass http://pods; } }\n", theirs, hostOfCase(i), file, c.inside)
	}
	runNginx(t, binary, dir, theirs, conf)
	eventually(t, "the routes are served", func() bool {
		code, _ := get(t, bound(p, false), hostOfCase(0), "/ready")
		return code == 200 && p.Table().Front.Log.Format != nil
	})
	lines := func(k int) (all []string) {
		if all = log.lines(); k == 0 {
			text, _ := os.ReadFile(file)
			all = strings.Split(string(text), "\n")
			all = all[:len(all)-1] // which is not whole yet, or empty
		}
		return slices.DeleteFunc(all, func(line string) bool { return !strings.HasPrefix(line, "|~|") || strings.Contains(line, " /ready ") })
	}
	for i := range count * 4 {
		request := draw.request(hostOfCase(draw.IntN(len(cases))))
		var of [2][]string
		for k, addr := range []string{theirs, bound(p, false)} {
			say(t, addr, strings.Replace(request, "X-Key: ", fmt.Sprintf("X-Key: %d-%d", i, k), 1))
			eventually(t, "it is logged", func() bool {
				all := lines(k)
				if len(all) > i {
					of[k] = strings.Split(all[i], "|~|")
				}
				return len(all) > i
			})
		}
		for j := range of[0] {
			want, got := anyPod(of[0][j], pods), anyPod(of[1][min(j, len(of[1])-1)], pods)
			name, _, _ := strings.Cut(want, "=")
			if escape == "json" { // where nginx writes what is no JSON
				want = strings.ToValidUTF8(strings.ReplaceAll(want, "\xff\xfe", "\\uFFFD\\uFFFD"), "")
			}
			switch {
			case name == "uri" && (strings.Contains(request, "%2F") || strings.Contains(strings.ToLower(request), hostOfCase(1))),
				(name == "request_length" || name == "content_length") && strings.Contains(request, "chunked"):
			case want != got:
				t.Errorf("%q: nginx logs %q, and this proxy %q", request, want, got)
			}
		}
	}
}

// anyPod is a value in which pods are all the same.
func anyPod(text string, pods []string) string {
	for _, pod := range pods {
		text = strings.ReplaceAll(text, pod, "pod")
	}
	return text
}

// logDrawer draws requests as bytes.
type logDrawer struct{ snippetDrawer }

func (d logDrawer) request(host string) string {
	target := d.of("/x", "/a%20b", "/a/../b", "//c", "/d%2Fe", "/é", "/\"q\"", "/x;y=1") + d.of("", "?", "?a=b", "?a=%22c%22", "?A=d&a=e", "?a", "?a=é\"\\")
	lines := []string{d.of("GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "PATCH") + " " + target + " HTTP/1.1", "Host: " + d.of(host, host, strings.ToUpper(host), host+":80"), "X-Key: ", "Connection: close"}
	lines = append(lines, d.some(3,
		[]string{"Referer: http://r.test/?a=\"b\"", "Referer:", "Referer: é\\"}, []string{"User-Agent: me/1.0 (\"x\\y\")", "User-Agent: \xff\xfe\t."},
		[]string{"X-Forwarded-For: 9.9.9.9, 8.8.8.8"}, []string{"X-Own: a", "X-Own: tab\there", "x-own: a\r\nX-Own: b"}, []string{"Cookie: c=d; e=f", "Cookie: b=1; C=2; c=\"3\"", "Cookie: a=b\r\nCookie: c=d"},
		[]string{"Content-Type: a/b"}, []string{"Authorization: Basic YW5uOnRlc3Q=", "Authorization: Basic YW5uOndyb25n", "Authorization: Bearer x"},
		[]string{"X-Tries: close,200", "X-Tries: 404", "X-Tries: garbage", "X-Tries: close,close,close", "X-Tries: half,500", "X-Tries: 302"})...)
	switch d.IntN(8) {
	case 0:
		lines = append(lines, "Content-Length: 5", "", "body5")
		return strings.Join(lines, "\r\n")
	case 1:
		lines = append(lines, "Transfer-Encoding: chunked", "", "5", "body5", "3;x=y", "abc", "0", "", "")
		return strings.Join(lines, "\r\n")
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}
