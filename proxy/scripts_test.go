package proxy_test

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
)

// TestScriptsMoveRequests: a path that a snippet puts in the place of another is one of the
// host's, whoever has it, with all that its route asks. One that is rewritten for ever ends.
func TestScriptsMoveRequests(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(
		service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")),
		service("staff", corev1.ServicePort{Port: 80}), slice("staff", "", listenerOf(t, "staff")),
		sameUsersSecret(),
	)
	putAnnotated(files, "open", "/open", "web", "configuration-snippet", `
rewrite ^/open/staff/(.*)$ /staff/$1 last;
rewrite ^/open/lost$ /lost last;
rewrite ^/open/loop(.*)$ /open/loop$1 last;
rewrite ^/open/round$ /staff/round last;
rewrite ^/open/up/(.*)$ /staff/../$1 last;
set $seen "$request_uri"; proxy_set_header X-Seen $seen;`)
	putAnnotated(files, "staff", "/staff", "staff", "auth-type", "basic", "auth-secret", "users", "configuration-snippet",
		`rewrite ^/staff/round$ /open/round last; set $who $remote_user; add_header X-Who "$who$seen" always; set $seen "";`)
	const right = "\nAuthorization: Basic YW5uOnRlc3Q="
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "moved.test", "/staff/a"); return code == 401 })
	for request, want := range map[string]string{
		"/open/x":               "200 web GET /open/x",
		"/open/staff/a":         "401",
		"/open/staff/a" + right: "200 staff GET /staff/a",
		"/staff/a":              "401",
		"/open/lost":            "404",
		"/open/loop":            "500",
		"/open/round":           "500",
		"/open/round" + right:   "500",
		"/open/up/x":            "400",
	} {
		status, said := ask(t, addr, "moved.test", request)
		code, rest, _ := strings.Cut(want, " ")
		if strconv.Itoa(status) != code || !strings.Contains(said, rest) {
			t.Errorf("%q: %d %s, want %s", request, status, said, want)
		}
		if strings.HasPrefix(want, "200 staff") && !strings.Contains(said, "X-Who: ann\r\n") {
			t.Errorf("%q: %s", request, said)
		}
	}
}

// TestScriptsGuard: what a snippet refuses is refused in every spelling that may be read as one
// of its paths.
func TestScriptsGuard(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")))
	putAnnotated(files, "all", "/", "web")
	putAnnotated(files, "inner", "/inner", "web", "configuration-snippet", `set $may 0; if ($http_x_key = k) { set $may 1; } if ($may = 0) { return 403 "no"; }`)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "moved.test", "/inner"); return code == 403 })
	for request, want := range map[string]string{
		"/x": "200", "/inner": "403", "/inner/x": "403", "/x%2F..%2Finner": "400", "//inner": "403", "/%2Finner": "403", "/inner%2Fx": "403", "/inner\nX-Key: k": "200", "/%2Finner\nX-Key: k": "200",
	} {
		if status, said := ask(t, addr, "moved.test", request); strconv.Itoa(status) != want {
			t.Errorf("%q: %d %s, want %s", request, status, said, want)
		}
	}
}

// TestScriptsAreBounded: a variable that is doubled again and again does not fill the memory.
func TestScriptsAreBounded(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")))
	putAnnotated(files, "grows", "/", "web", "configuration-snippet", `set $a "$args"; `+strings.Repeat(`set $a "$a$a"; `, 60)+`add_header X-A $a;`)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "moved.test", "/"); return code == 200 })
	if code, _ := get(t, addr, "moved.test", "/?x"); code != 500 {
		t.Errorf("it is answered %d", code)
	}
}

// putAnnotated enters an Ingress of moved.test with annotations of ingress-nginx.
func putAnnotated(files *cluster.Files, name, path, service string, pairs ...string) {
	with := map[string]string{"path": path, "service": service}
	for i := 0; i+1 < len(pairs); i += 2 {
		with[pairs[i]] = pairs[i+1]
	}
	files.Put(annotated(name, "moved.test", with))
}

// listenerOf returns the address of a backend that says what it was asked.
func listenerOf(t *testing.T, name string) string {
	s := httptest.NewServer(sameBackend(name))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}
