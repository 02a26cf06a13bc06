package proxy_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/proxy"
)

// sameCase is an option and what ingress-nginx's documentation says becomes of it:
// directives of one location, written by hand.
type sameCase struct {
	with   map[string]string // annotations, and what annotated takes
	server string            // directives of the server
	inside string            // of the location
	match  string            // the location, "/" by default
}

func sameCases() []sameCase {
	only := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	rewrite := func(path, to string) sameCase {
		return sameCase{only("rewrite-target", to, "use-regex", "true", "path", path), "", `rewrite "(?i)` + path + `" ` + to + ` break;`, `~* "^` + path + `"`}
	}
	regex := func(path string) sameCase {
		return sameCase{only("use-regex", "true", "path", path), "", "", `~* "^` + path + `"`}
	}
	cases := []sameCase{
		{only(), "", "", ""},
		rewrite("/api/(.*)", "/$1"), rewrite("/api(/|$)(.*)", "/$2"), rewrite("/a/(b+)/(.*)", "/$2/$1"), rewrite("/api", "/fixed"), rewrite("/api/(.*)", "/$1?k=v"),
		regex("/a.*z"), regex("/[a-c]+/x"), regex("/x$"),
		{only("permanent-redirect", "https://new.example/x"), "", "return 301 https://new.example/x;", ""},
		{only("permanent-redirect", "https://new.example", "permanent-redirect-code", "308"), "", "return 308 https://new.example;", ""},
		{only("temporal-redirect", "https://new.example/y?z=1"), "", "return 302 https://new.example/y?z=1;", ""},
		{only("temporal-redirect", "https://new.example", "temporal-redirect-code", "307"), "", "return 307 https://new.example;", ""},
		{only("app-root", "/app"), "if ($uri = /) { return 302 $scheme://$http_host/app; }", "", ""},
		{only("whitelist-source-range", "127.0.0.0/8"), "", "allow 127.0.0.0/8; deny all;", ""},
		{only("whitelist-source-range", "10.0.0.0/8"), "", "allow 10.0.0.0/8; deny all;", ""},
		{only("denylist-source-range", "127.0.0.1"), "", "deny 127.0.0.1;", ""},
		{only("upstream-vhost", "inner.test"), "", "proxy_set_header Host inner.test;", ""},
		{only("x-forwarded-prefix", "/before"), "", "proxy_set_header X-Forwarded-Prefix /before;", ""},
		{only("proxy-body-size", "4"), "", "client_max_body_size 4;", ""},
		{only("proxy-body-size", "0"), "", "client_max_body_size 0;", ""},
		{only("proxy-redirect-from", "http://inner.test/app", "proxy-redirect-to", "https://shop.test"), "", "proxy_redirect http://inner.test/app https://shop.test;", ""},
		{only("proxy-cookie-domain", "inner.test shop.test"), "", "proxy_cookie_domain inner.test shop.test;", ""},
		{only("proxy-cookie-path", "/app /"), "", "proxy_cookie_path /app /;", ""},
		{only("force-ssl-redirect", "true"), "return 308 https://$host$request_uri;", "", ""},
		{only("path", "/sub"), "", "", "/sub"},
	}
	return cases
}

func sameRequests() []string {
	return []string{
		"/", "/?a=b", "/x", "/X", "/api", "/api/", "/api/v1?q=1", "/api/a%20b", "/API/v2", "/a/bb/c", "/az", "/abcz/z", "/abc/x", "/sub", "/sub/", "/sub/x",
		"POST /\n\nbody5", "POST /api/x\n\nb", "HEAD /x", "OPTIONS /", "DELETE /api/1",
	}
}

// TestSameAsNginx asks Debian's nginx, with what the documentation of each option
// implies, and this proxy the same, and compares status, Location, cookies, the
// body, and what the backend was sent.
func TestSameAsNginx(t *testing.T) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("nginx is not installed (Debian package nginx): ", err)
		}
		t.Skip("nginx is not installed (Debian package nginx): ", err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "http://inner.test/app/login")
		w.Header().Set("Set-Cookie", "a=b; Path=/app/x; Domain=inner.test")
		fmt.Fprintf(w, "%s %s host=%s prefix=%s body=%q", r.Method, r.RequestURI, r.Host, r.Header.Get("X-Forwarded-Prefix"), body)
	}))
	defer web.Close()
	backend := strings.TrimPrefix(web.URL, "http://")
	peer := startNginx(t, binary, backend)
	files, p := start(t, func(o *proxy.Options) { o.Routes.Classes.Adopt = []string{ingressclass.NginxController} })
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend))
	class := ingressclass.NginxName
	for i, c := range sameCases() {
		ing := annotated(fmt.Sprint("i", i), hostOfCase(i), c.with)
		ing.Spec.IngressClassName = &class
		files.Put(ing)
	}
	last := hostOfCase(len(sameCases()))
	files.Put(ingress("last", last, "/", "web", number))
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, last, "/"); return code == 200 })
	asked := 0
	for i, c := range sameCases() {
		for _, request := range sameRequests() {
			asked++
			want, got := essence(ask(t, peer, hostOfCase(i), request)), essence(ask(t, addr, hostOfCase(i), request))
			if want != got {
				t.Errorf("%v %q:\nnginx: %s\nours:  %s", c.with, request, want, got)
			}
		}
	}
	if asked < 500 {
		t.Errorf("%d requests", asked)
	}
}

func hostOfCase(i int) string { return fmt.Sprintf("case-%d.test", i) }

// essence is what must be the same of a response. The text of errors and redirects
// is each one's own.
func essence(status int, said string) string {
	kept := []string{fmt.Sprint(status)}
	for _, line := range strings.Split(said, "\r\n") {
		if strings.HasPrefix(line, "Location: ") || strings.HasPrefix(line, "Set-Cookie: ") || strings.Contains(line, " host=") {
			kept = append(kept, line)
		}
	}
	slices.Sort(kept[1:])
	return strings.Join(kept, " | ")
}

// startNginx returns the address of an nginx with a server for each case.
func startNginx(t *testing.T, binary, backend string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	var conf bytes.Buffer
	fmt.Fprintf(&conf, "daemon off; master_process off; worker_processes 1; pid %s/pid; error_log %s/error crit;\nevents { worker_connections 256; }\nhttp {\naccess_log off;\n", dir, dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	for i, c := range sameCases() {
		host := "proxy_set_header Host $http_host;"
		if strings.Contains(c.inside, "set_header Host") {
			host = ""
		}
		redirect := "proxy_redirect off;"
		if strings.Contains(c.inside, "proxy_redirect") {
			redirect = ""
		}
		pass := "proxy_pass http://" + backend + ";"
		rest := "location / { return 404; }" // the default backend
		if c.match == "" {
			rest = ""
		}
		fmt.Fprintf(&conf, "server { listen %s; server_name %s; merge_slashes on; %s %s location %s { proxy_http_version 1.1; %s %s %s %s } }\n",
			addr, hostOfCase(i), c.server, rest, cmp.Or(c.match, "/"), host, redirect, c.inside, pass)
	}
	conf.WriteString("}\n")
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, conf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	nginx := exec.Command(binary, "-c", file, "-p", dir)
	nginx.Stderr = &said
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nginx.Process.Kill()
		nginx.Wait()
		if said.Len() > 0 {
			t.Logf("nginx said: %s", &said)
		}
	})
	eventually(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return addr
}
