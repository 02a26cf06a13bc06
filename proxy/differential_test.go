package proxy_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestSameAsNginx asks Debian's nginx, with what the documentation of each option
// implies, and this proxy the same, and compares status, fields and body of the
// response, and all that the backend was sent.
func TestSameAsNginx(t *testing.T) {
	if asked := compareWithNginx(t, sameCases()); asked < 1000 {
		t.Errorf("%d requests", asked)
	}
}

// TestSameAsNginxByHTTP2 asks this proxy by HTTP/2 what nginx is asked by HTTP/1.1: what routes
// and options make of a request is no matter of the protocol.
func TestSameAsNginxByHTTP2(t *testing.T) {
	compareWithNginxAs(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true }, sameCases())
}

// compareWithNginx returns how many requests both have been asked. pairs are options of the
// ConfigMap.
func compareWithNginx(t *testing.T, cases []sameCase, pairs ...string) (asked int) {
	t.Helper()
	return compareWithNginxAs(t, func(*proxy.Options) {}, cases, pairs...)
}

// compareWithNginxAs compares a proxy that has other options, too.
func compareWithNginxAs(t *testing.T, change func(*proxy.Options), cases []sameCase, pairs ...string) (asked int) {
	t.Helper()
	binary := findNginx(t)
	places := map[string]string{}
	via := http.DefaultTransport
	files, p := start(t, func(o *proxy.Options) {
		if change(o); o.H2C {
			via = unencryptedHTTP2(t)
		}
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
		if len(pairs) > 0 {
			o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		}
	})
	if len(pairs) > 0 {
		files.Put(configMap("wide", pairs...))
	}
	for _, name := range []string{"web", "new", "errors", "gate"} {
		s := httptest.NewServer(sameBackend(name))
		defer s.Close()
		addr := strings.TrimPrefix(s.URL, "http://")
		places[strings.ToUpper(name)] = addr
		files.Put(service(name, corev1.ServicePort{Port: 80}), slice(name, "", addr))
	}
	peer := startNginx(t, binary, places, cases)
	addr := bound(p, false)
	files.Put(service("empty", corev1.ServicePort{Port: 80}), configMap("fields", "X-Seen", "$request_method $host$request_uri $server_protocol $https.", "X-Set", "a, b", "Content-Security-Policy", "default-src 'self'"),
		sameUsersSecret())
	class := ingressclass.NginxName
	for i, c := range cases {
		for _, ing := range sameObjects(i, c) {
			ing.Spec.IngressClassName = &class
			files.Put(ing)
		}
	}
	last := hostOfCase(len(cases))
	files.Put(ingress("last", last, "/", "web", number))
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, last, "/"); return code == 200 })
	for i, c := range cases {
		for _, host := range slices.DeleteFunc([]string{hostOfCase(i), sameText(i, c.also, strings.NewReplacer())}, func(s string) bool { return s == "" }) {
			for _, request := range slices.Concat(sameRequests(), c.requests) {
				asked++
				want, got := essence(ask(t, peer, host, request)), essence(askVia(t, via, addr, host, request))
				if want != got {
					t.Errorf("%v %v %s %q:\nnginx: %s\nours:  %s", c.with, c.canary, host, request, want, got)
				}
			}
		}
	}
	t.Logf("%d configurations, %d requests", len(cases), asked)
	return asked
}

// findNginx returns Debian's nginx.
func findNginx(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("nginx is not installed (Debian package nginx): ", err)
		}
		t.Skip("nginx is not installed (Debian package nginx): ", err)
	}
	return binary
}

// findModule returns a module of nginx, which a package of Debian's has.
func findModule(t *testing.T, name, debian string) string {
	t.Helper()
	file := "/usr/lib/nginx/modules/" + name + ".so"
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("nginx has no %s (Debian package %s): %v", name, debian, err)
		}
		t.Skipf("nginx has no %s (Debian package %s): %v", name, debian, err)
	}
	return file
}

// sameUsers may pass, all of them with the password "test", but for those whose first line says
// otherwise.
const sameUsers = `# people
ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=

bea:$1$saltsalt$tTWg0JeO/sYmHvtKmZE8c.
cat:$apr1$saltsalt$NBMPZFGR7yazCdGvlWJji1:the third
dan:$5$saltsalt$q6kNPzk9GPb3dpYKO2TUS45z2kiVxsUVz7eWVJcih.0
eve:$6$saltsalt$JcVDtuB6d1BHhCd5RPBh8g8xX/1CbY8EU2PN0MTaj2/Mypw4P./C6dN4j0HALhzBDTocyW1Jm.gYaTPjFGCV40
fay:{SSHA}9DgilxbKtDVpSW86NjCzcnUkuBtzYWx0
gus:$2a$04$hlgQlHMg4bnfKev6X3w1Eux4TWC10YSD7Osnu9O/eXu25li2DopPm
hal:{PLAIN}test:in the clear
ida:{PLAIN}other
ida:{PLAIN}test
#jo:{PLAIN}test
kay:{plain}test
a b:{PLAIN}test
`

// sameUsersSecret is what auth-secret names.
func sameUsersSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"}, Data: map[string][]byte{"auth": []byte(sameUsers)}}
}

// sameBackend says what it was asked, and all that it was sent with it. For /status/N
// it answers so. As an authentication service it lets those pass whose cookie says
// yes.
func sameBackend(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked := r.Header.Get("X-Ask"); name == "gate" && asked != "" { // it is tested what is asked
			host := r.Host
			if asked == "all but the host" {
				host = ""
			}
			w.Header().Set("X-Asked", fmt.Sprintf("%s %s %s %s %s %t %q", r.Method, r.RequestURI, host, asked, r.Header.Get("X-Own"), r.ContentLength > 0, body))
		}
		if verdict := r.Header.Get("X-Judge"); name == "gate" && verdict != "" {
			judge(w, r, verdict, body)
			return
		}
		if c, err := r.Cookie("say"); name == "gate" && (err != nil || c.Value != "yes") {
			w.Header().Set("X-Why", "say it")
			w.Header().Set("Location", "https://login.test/#/?rd="+r.Header.Get("X-Original-URL"))
			w.WriteHeader(401)
			return
		}
		w.Header().Set("X-User", "ann")
		w.Header().Set("Location", "http://inner.test/app/login")
		for step := range strings.SplitSeq(r.Header.Get("X-Steer"), ";") { // "/path field=value field=value"
			if fields := strings.Fields(step); len(fields) > 1 && fields[0] == r.URL.Path {
				for _, f := range fields[1:] {
					name, value, _ := strings.Cut(f, "=")
					w.Header().Add(name, value)
				}
			}
		}
		switch {
		case r.Header.Get("X-Says") != "": // what else it is to say, a field after the other
			w.Header().Del("Location")
			for _, line := range strings.Split(r.Header.Get("X-Says"), "|") {
				name, value, _ := strings.Cut(line, ":")
				w.Header().Add(name, value)
			}
		case r.Header.Get("X-Ask") == "":
			w.Header().Set("Set-Cookie", "a=b; Path=/app/x; Domain=inner.test; secure; SameSite=Lax")
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%s %s %s host=%s body=%q", name, r.Method, r.RequestURI, r.Host, body)
		for _, field := range slices.Sorted(maps.Keys(r.Header)) {
			value := strings.Join(r.Header[field], "|")
			if field == "X-Request-Id" && len(value) == 32 {
				value = "made up"
			}
			fmt.Fprintf(&text, " %s=%q", field, value)
		}
		path, flushed := strings.CutSuffix(r.URL.Path, "/flush")
		_, after, _ := strings.Cut(path, "/status/")
		status, err := strconv.Atoi(after)
		if err != nil {
			status = 200
		}
		if !flushed && status != 204 {
			w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
		}
		w.WriteHeader(status)
		io.WriteString(w, text.String())
	})
}

// unjudged are fields that a judge may be sent by one and not by the other: this proxy tells it
// what it tells the backends of the client, where nginx lets through what the client says.
var unjudged = []string{"Connection", "Content-Length", "X-Request-Id", "X-Judge", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Scheme", "X-Scheme", "X-Original-Forwarded-For", "X-Original-Forwarded-Host"}

// judge answers what the question has as its verdict, and says what it was asked.
func judge(w http.ResponseWriter, r *http.Request, verdict string, body []byte) {
	status, fields, _ := strings.Cut(verdict, "|")
	asked := fmt.Sprintf("%s %s host=%s body=%q", r.Method, r.RequestURI, r.Host, body)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if name == "Content-Length" && r.ContentLength > 0 || !slices.Contains(unjudged, name) {
			asked += fmt.Sprintf(" %s=%q", name, r.Header[name])
		}
	}
	w.Header().Set("X-Asked", asked)
	for line := range strings.SplitSeq(fields, "|") {
		if name, value, _ := strings.Cut(line, ": "); name != "" {
			w.Header().Add(name, value)
		}
	}
	code, _ := strconv.Atoi(status)
	w.WriteHeader(code)
}

func hostOfCase(i int) string { return fmt.Sprintf("case-%d.test", i) }

// attributesOf is a Set-Cookie without what means nothing: the blanks, which nginx leaves out of
// those that it changes, and the order of attributes.
func attributesOf(line string) string {
	parts := strings.Split(regexp.MustCompile(` *([;=]) *`).ReplaceAllString(line, "$1"), ";")
	slices.Sort(parts[1:])
	return strings.Join(parts, "; ")
}

// essence is what must be the same of a response. The text of errors and redirects
// is each one's own.
func essence(status int, said string) string {
	said = strings.NewReplacer("Go-http-client/2.0", "Go-http-client/1.1", "HTTP/2.0", "HTTP/1.1").Replace(said)
	kept := []string{fmt.Sprint(status)}
	varies := map[string]bool{}
	proxied := strings.Contains(said, " host=")
	told := !proxied && strings.Contains(said, "X-User: ann") // of a backend's body, by HEAD
	for _, line := range strings.Split(said, "\r\n") {
		name, _, isField := strings.Cut(line, ": ")
		switch {
		case strings.Contains(line, " host="):
		case line == "Vary: Origin": // which ingress-nginx leaves out where origins are listed, to the harm of caches
			continue
		case name == "Vary":
			for member := range strings.SplitSeq(line[len("Vary: "):], ",") {
				varies[strings.ToLower(strings.TrimSpace(member))] = true
			}
			continue
		case !isField, strings.Contains(name, " "), name == "Date", name == "Server", name == "Content-Length" && !told, name == "Connection", name == "Content-Type" && !proxied,
			name == "Www-Authenticate" && status == 302: // to a client that is sent elsewhere to sign in
			continue
		case name == "Set-Cookie":
			line = attributesOf(line)
		}
		kept = append(kept, line)
	}
	if varies["*"] {
		varies = map[string]bool{"*": true} // which says all
	}
	for member := range varies {
		kept = append(kept, "Vary: "+member)
	}
	slices.Sort(kept[1:])
	return strings.Join(kept, " | ")
}

// startNginx returns the address of an nginx with a server for each case.
func startNginx(t *testing.T, binary string, backends map[string]string, cases []sameCase) string {
	t.Helper()
	addr := freeAddress(t)
	dir := t.TempDir()
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte(sameUsers), 0o644); err != nil {
		t.Fatal(err)
	}
	var conf strings.Builder
	pairs := []string{"LISTEN", addr, "USERS", users}
	for name, at := range backends {
		pairs = append(pairs, name, at)
	}
	for i, c := range cases {
		conf.WriteString(sameText(i, sameServer(i, c, addr), strings.NewReplacer(pairs...)))
	}
	runNginx(t, binary, dir, addr, conf.String())
	return addr
}

// freeAddress returns an address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// runNginx runs an nginx with some servers, of which one listens at addr.
func runNginx(t *testing.T, binary, dir, addr, servers string) {
	t.Helper()
	var conf bytes.Buffer
	if strings.Contains(servers, "more_") {
		fmt.Fprintf(&conf, "load_module %s;\n", findModule(t, "ngx_http_headers_more_filter_module", "libnginx-mod-http-headers-more-filter"))
	}
	if strings.Contains(servers, "geoip2 ") {
		fmt.Fprintf(&conf, "load_module %s;\n", findModule(t, "ngx_http_geoip2_module", "libnginx-mod-http-geoip2"))
	}
	fmt.Fprintf(&conf, "user root; daemon off; master_process off; worker_processes 1; pid %s/pid; error_log %s/error crit;\nevents { worker_connections 1024; }\nhttp {\naccess_log off; server_names_hash_bucket_size 128;\n", dir, dir)
	conf.WriteString("map $http_x_request_id $name { default $http_x_request_id; \"\" $request_id; }\n")
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	conf.WriteString(servers + "}\n")
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
}

// sameServer is the configuration of a case.
func sameServer(i int, c sameCase, addr string) string {
	host := "proxy_set_header Host $http_host;"
	if strings.Contains(c.inside, "set_header Host") {
		host = ""
	}
	redirect := "proxy_redirect off;"
	if strings.Contains(c.inside, "proxy_redirect") {
		redirect = ""
	}
	rest := "location / { return 404; }" // the default backend
	switch {
	case c.match == "":
		rest = ""
	case strings.HasPrefix(c.inside, "return"): // all of the host is sent away
		rest = "location / { " + c.inside + " }"
	}
	return fmt.Sprintf("%s\nserver { listen %s; server_name %s; merge_slashes on; %s %s location %s { %s %s %s %s proxy_pass %s; } }\n",
		c.http, addr, hostOfCase(i), c.server, rest, cmp.Or(c.match, "/"), sameFields, host, redirect, c.inside, cmp.Or(c.pass, "http://WEB"))
}
