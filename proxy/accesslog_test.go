package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
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
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
)

// logFile keeps the lines of an access log.
type logFile struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (f *logFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(b)
}

func (f *logFile) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Split(strings.TrimSuffix(f.text.String(), "\n"), "\n")
}

// startLogged is start, with an access log.
func startLogged(t *testing.T, format string) (*logFile, *proxy.Proxy) {
	t.Helper()
	f, err := accesslog.Named(format, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := &logFile{}
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2, o.H2C = true, true
		o.AccessLog = proxy.AccessLog{Format: f, Share: 1, To: to}
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Header.Get("Upgrade") != "" {
			c, _, _ := w.(http.Hijacker).Hijack()
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
			return
		}
		body := strings.Repeat("x", len(r.URL.Path)*1000)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(w, body)
	}))
	t.Cleanup(web.Close)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")), ingress("web", "", "/", "web", number))
	eventually(t, "the route is served", func() bool { code, _ := get(t, bound(p, false), "ready", "/"); return code == 200 })
	return to, p
}

// say sends bytes over a connection of its own, and reads until the server closes it.
func say(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, text)
	answer, _ := io.ReadAll(bufio.NewReader(c))
	return string(answer)
}

// Requests of every kind are logged, whichever front end they come by: those that are
// refused and those that become tunnels, too.
func TestAccessLogOverTheWire(t *testing.T) {
	log, p := startLogged(t, "$remote_addr $scheme $host $request|$status $body_bytes_sent $request_length $upstream_status $upstream_response_length")
	plain, secure := bound(p, false), bound(p, true)
	head := "GET /a HTTP/1.1\r\nHost: A.example\r\nConnection: close\r\n\r\n"
	post := "POST /a HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("y", 20_000)
	socket := "GET /s HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
	for _, text := range []string{head, "HEAD" + head[3:], post, socket, "TRACE /a HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a b\r\n\r\n", "\x16\x03\x01 nonsense\r\n\r\n"} {
		say(t, plain, text)
	}
	say(t, secure, head) // plain HTTP where TLS is spoken
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	for _, rt := range []http.RoundTripper{tr, unencryptedHTTP2(t)} {
		addr := map[bool]string{true: "https://" + secure, false: "http://" + plain}[rt == http.RoundTripper(tr)]
		req, _ := http.NewRequest("GET", addr+"/two?x", strings.NewReader("body"))
		req.Host = "b.example"
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.Proto != "HTTP/2.0" {
			t.Fatal(resp, err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	want := []string{
		fmt.Sprintf("127.0.0.1 http a.example GET /a HTTP/1.1|200 2000 %d 200 2000", len(head)),
		fmt.Sprintf("127.0.0.1 http a.example HEAD /a HTTP/1.1|200 0 %d 200 0", len(head)+1),
		fmt.Sprintf("127.0.0.1 http a.example POST /a HTTP/1.1|200 2000 %d 200 2000", len(post)),
		fmt.Sprintf("127.0.0.1 http a.example GET /s HTTP/1.1|101 5 %d 101 0", len(socket)),
		"127.0.0.1 http a.example TRACE /a HTTP/1.1|400 47 ",
		"127.0.0.1 http - -|400 42 0 - -",
		"127.0.0.1 https - -|400 49 0 - -",
		"127.0.0.1 https b.example GET /two?x HTTP/2.0|200 4000 ",
		"127.0.0.1 http b.example GET /two?x HTTP/2.0|200 4000 ",
	}
	for _, w := range want { // a request that nobody sent may have a line, too
		eventually(t, fmt.Sprintf("%q is logged", w), func() bool {
			return slices.ContainsFunc(ours(log), func(line string) bool { return strings.HasPrefix(line, w) })
		})
	}
}

// ours are the lines but those of waiting for the route.
func ours(log *logFile) []string {
	return slices.DeleteFunc(log.lines(), func(line string) bool { return strings.Contains(line, "ready") || line == "" })
}

// TestLogsAsNginx sends Debian's nginx and this proxy the same bytes and compares what
// they log.
func TestLogsAsNginx(t *testing.T) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("nginx is not installed (Debian package nginx): ", err)
		}
		t.Skip("nginx is not installed (Debian package nginx): ", err)
	}
	const format = `$remote_addr - $remote_user "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_length ` +
		`$host $http_host $scheme $request_method $request_uri $uri $args $is_args $arg_x $cookie_c $server_protocol $content_length $http_x_y $upstream_status $upstream_response_length`
	log, p := startLogged(t, format)
	requests := []string{
		"GET /a HTTP/1.1\r\nHost: A.example\r\n",
		"GET /a?x=1&y=%22 HTTP/1.1\r\nHost: a.example:80\r\nReferer: http://b/\"q\"\\\r\nUser-Agent: a\tb\x80\xff\u00fc\r\n",
		"GET /%61//b/./c?X=2 HTTP/1.1\r\nHost: a.example\r\nCookie: b=1; c=\"two\"\r\nX-Y: z\r\n",
		"GET /? HTTP/1.1\r\nHost: a.example\r\nUser-Agent:\r\nAuthorization: Basic YW46c2VjcmV0\r\n",
		"GET /\"'<>{}| HTTP/1.1\r\nHost: a.example\r\nAuthorization: basic eA==\r\n",
		"GET / HTTP/1.0\r\nHost: a.example\r\n",
		"POST /p HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
	}
	path, addr := startLoggingNginx(t, binary, format, bound(p, false))
	for _, r := range requests {
		for _, at := range []string{addr, bound(p, false)} {
			if strings.HasSuffix(r, "\r\n") {
				r += "Connection: close\r\n\r\n"
			}
			say(t, at, r)
		}
	}
	var theirs []string
	eventually(t, "nginx has logged", func() bool {
		text, _ := os.ReadFile(path)
		theirs = strings.Split(strings.TrimSpace(string(text)), "\n")
		return len(theirs) == len(requests) && len(ours(log)) >= 2*len(requests)
	})
	all := ours(log)
	for i, want := range theirs {
		if !slices.Contains(all, want) {
			t.Errorf("%q\nnginx: %s\nours:  %s", requests[i], want, all[min(2*i+1, len(all)-1)])
		}
	}
}

// startLoggingNginx returns the file of the log and the address of an nginx in front
// of a backend.
func startLoggingNginx(t *testing.T, binary, format, backend string) (file, addr string) {
	t.Helper()
	addr = freeAddress(t)
	dir := t.TempDir()
	file = filepath.Join(dir, "log")
	var conf bytes.Buffer
	fmt.Fprintf(&conf, "user root; daemon off; master_process off; worker_processes 1; pid %s/pid; error_log %s/error crit;\nevents { worker_connections 64; }\nhttp {\n", dir, dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	fmt.Fprintf(&conf, "log_format all '%s'; access_log %s all;\nserver { listen %s; location / { proxy_pass http://%s; proxy_set_header User-Agent nginx; } }\n}\n", format, file, addr, backend)
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, conf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := exec.Command(binary, "-c", config, "-p", dir)
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nginx.Process.Kill(); nginx.Wait() })
	eventually(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return file, addr
}

// TestLoggedHandshakes: the log says how clients speak TLS, over both protocols of HTTP.
func TestLoggedHandshakes(t *testing.T) {
	log, p := startLogged(t, "$server_protocol $ssl_protocol $ssl_cipher $ssl_server_name $connection")
	for _, want := range []string{"HTTP/1.1 TLSv1.2 ECDHE-", "HTTP/2.0 TLSv1.3 TLS_"} {
		two := strings.HasPrefix(want, "HTTP/2")
		config := &tls.Config{InsecureSkipVerify: true, ServerName: "a.example", MaxVersion: tls.VersionTLS12}
		if two {
			config.MaxVersion = tls.VersionTLS13
		}
		tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: two}
		defer tr.CloseIdleConnections()
		req, _ := http.NewRequest("GET", "https://"+bound(p, true)+"/a", nil)
		req.Host = "a.example"
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		eventually(t, "the log has "+want, func() bool {
			return slices.ContainsFunc(log.lines(), func(l string) bool { return strings.HasPrefix(l, want) && strings.HasSuffix(l, " a.example -") })
		})
	}
}
