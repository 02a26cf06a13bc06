package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
)

// TestTablesInLogsAsNginx gives tables about responses to nginx and to this proxy, and asks both
// what they log, and whether: $loggable decides that in the configuration of ingress-nginx.
func TestTablesInLogsAsNginx(t *testing.T) {
	const tables = `
map $upstream_status $answered { default $upstream_status; "" -1; }
map $status $class { ~^(?:2|3).. fine; ~^(4)(.*)$ "$1-$2"; default bad; }
map "$class:$upstream_http_x_kind" $kind { fine:a A; "4-04:" none; default "$class by $sent_http_x_kind"; }
map $body_bytes_sent $size { 0 empty; ~^..\d?$ little; default other; }
map $upstream_response_length $from_pod { "" nothing; default $upstream_response_length; }
map $request_time $slow { ~^0\.[0-4] no; default yes; }
map $kind$arg_log $loggable { A0 0; "4-10 by b" ""; default 1; }
`
	const format = `$request_uri $answered $class [$kind] $size $from_pod $slow`
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind := r.URL.Query().Get("kind"); kind != "" {
			w.Header().Set("X-Kind", kind)
		}
		status, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		w.WriteHeader(max(status, 200))
		fmt.Fprint(w, r.URL.Query().Get("body"))
	}))
	defer pod.Close()
	at := strings.TrimPrefix(pod.URL, "http://")

	dir := t.TempDir()
	theirs := freeAddress(t)
	file := filepath.Join(dir, "log")
	runNginx(t, findNginx(t), dir, theirs, tables+fmt.Sprintf("log_format f '%s';\nserver { listen %s; access_log %s f if=$loggable; location / { proxy_pass http://%s; if ($arg_refuse) { return 403; } } }\n", format, theirs, file, at))

	plain, err := accesslog.Named("not yet: $request_uri", nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &logFile{}
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.AccessLog = proxy.AccessLog{Format: plain, Share: 1, To: log}
	})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", at), configMap("wide", "http-snippet", tables, "log-format-upstream", format),
		annotated("web", "web.test", map[string]string{"configuration-snippet": "if ($arg_refuse) { return 403; }"}))
	eventually(t, "the route is served", func() bool {
		code, _ := get(t, bound(p, false), "web.test", "/ready?log=0&kind=a")
		return code == 200 && p.Table().Front.Log.Keep != nil
	})
	requests := []string{"/200", "/200?kind=a", "/200?kind=a&log=0", "/404", "/404?kind=b&body=x", "/410?kind=b", "/410?kind=c", "/503", "/200?body=" + strings.Repeat("y", 200), "/200?refuse=1", "/304"}
	for _, request := range requests {
		ask(t, theirs, "web.test", request)
		ask(t, bound(p, false), "web.test", request)
	}
	lines := func() (want, got []string) {
		text, _ := os.ReadFile(file)
		none := func(line string) bool { return line == "" || strings.HasPrefix(line, "not yet") }
		return slices.DeleteFunc(strings.Split(string(text), "\n"), none), slices.DeleteFunc(log.lines(), none)
	}
	eventually(t, "both have logged the last one", func() bool {
		want, got := lines()
		isLast := func(line string) bool { return strings.HasPrefix(line, "/304 ") }
		return slices.ContainsFunc(want, isLast) && slices.ContainsFunc(got, isLast)
	})
	want, got := lines()
	if len(want) != len(requests)-2 || !slices.Equal(want, got) {
		t.Errorf("nginx logs\n%s\nand this proxy\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// TestTablesOfResponsesAreLate: what is not there yet decides nothing.
func TestTablesOfResponsesAreLate(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"} })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		configMap("wide", "http-snippet", `map $status $class { ~^2 fine; default bad; } map $class $of_class { fine 1; }`),
		annotated("field", "field.test", map[string]string{"configuration-snippet": "add_header X-Class $class; add_header X-Of $of_class;"}),
		annotated("if", "if.test", map[string]string{"configuration-snippet": "if ($class = bad) { return 403; }"}),
		annotated("sent", "sent.test", map[string]string{"configuration-snippet": "proxy_set_header X-Class $class;"}),
		annotated("denied", "denied.test", map[string]string{"denied-requests": "$of_class = 1 403"}))
	addr := bound(p, false)
	for host, want := range map[string]struct {
		status int
		says   string
	}{"field.test": {200, "X-Class: fine\r\nX-Of: 1\r\n"}, "if.test": {503, ""}, "sent.test": {200, "web"}, "denied.test": {503, ""}} {
		eventually(t, host+" answers", func() bool {
			status, said := ask(t, addr, host, "/")
			return status == want.status && strings.Contains(said, want.says)
		})
	}
}
