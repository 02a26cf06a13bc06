package proxy_test

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestDrawnAnswersSameAsNginx draws what a backend writes, well formed or not, and compares what
// clients get of that, but for the fields that are a connection's own.
//
// Not drawn is what this proxy refuses on purpose, or does as RFC 9110 and 9112 have it where nginx
// does not: chunks of HTTP/1.0, fields that Connection names, informational responses; fields that
// are there for nginx; and Content-Type that is empty or there twice.
func TestDrawnAnswersSameAsNginx(t *testing.T) {
	binary := findNginx(t)
	count, parts := drawn(t)
	draw := answerDrawer{parts}
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
	})
	pod := acceptEach(t, parrot)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", pod), ingress("web", "web.test", "/", "web", number), configMap("wide", "upstream-keepalive-connections", "0", "proxy-next-upstream", "off"))
	theirs := freeAddress(t)
	runNginx(t, binary, t.TempDir(), theirs, fmt.Sprintf("server { listen %s; large_client_header_buffers 4 64k; location / { proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; proxy_redirect off; proxy_next_upstream off; proxy_read_timeout 2s; proxy_pass http://%s; } }\n", theirs, pod))
	eventually(t, "the route is served", func() bool { code, _ := get(t, bound(p, false), "web.test", "/"); return code == 200 })
	for range count * 20 {
		method, answer := draw.of("GET", "GET", "GET", "HEAD", "POST"), draw.answer()
		want, got := heard(t, theirs, method, answer), heard(t, bound(p, false), method, answer)
		if want != got {
			t.Errorf("%s %q:\nnginx: %s\nours:  %s", method, answer, want, got)
		}
	}
}

// parrot is a pod that writes what it is told to, and hangs up.
func parrot(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	io.Copy(io.Discard, r.Body)
	text, _ := base64.StdEncoding.DecodeString(r.Header.Get("X-Raw"))
	if len(text) == 0 {
		text = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	c.Write(text)
}

// heard is what a client gets.
func heard(t *testing.T, addr, method, answer string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	body := ""
	if method == "POST" {
		body = "Content-Length: 4\r\n"
	}
	fmt.Fprintf(c, "%s /x HTTP/1.1\r\nHost: web.test\r\nX-Raw: %s\r\n%s\r\n", method, base64.StdEncoding.EncodeToString([]byte(answer)), body)
	if body != "" {
		io.WriteString(c, "body")
	}
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(r.Body)
	said := []string{fmt.Sprint(r.StatusCode)}
	if r.StatusCode >= 500 && strings.Contains(string(text), "Bad Gateway") {
		return said[0]
	}
	for name, values := range r.Header {
		if !slices.Contains([]string{"Date", "Server", "Connection", "Keep-Alive", "Upgrade", "Te", "Proxy-Connection", "Trailer", "Proxy-Authenticate", "Content-Length"}, name) {
			said = append(said, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(said[1:])
	return fmt.Sprintf("%s %q %v", strings.Join(said, " | "), text, errors.Is(err, io.ErrUnexpectedEOF))
}

// answerDrawer draws what a backend writes.
type answerDrawer struct{ snippetDrawer }

func (d answerDrawer) answer() string {
	version := d.of("HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.0 ")
	text := version + d.of("200 OK", "200 OK", "200", "200 ", "404 Not  Found", "204 No Content", "304 Not Modified", "206 Partial", "301 Moved", "299 Odd", "500 X", "600 X", "999 X") + "\r\n"
	fields := d.some(3,
		[]string{"Content-Type: text/plain", "content-type: a/b"},
		[]string{"X-A: 1", "X-A: 1\r\nX-A: 2", "X-A:\t tab \t", "X_A: under", "X.A: dot", "X-Long: " + strings.Repeat("long ", 100)},
		[]string{"Set-Cookie: a=b\r\nSet-Cookie: c=d", "Set-Cookie: a=b"},
		[]string{"X-Accel-Buffering: no", "x-accel-limit-rate: 10000000\r\nX-Accel-Expires: 5", "X-Accel-Other: 1"},
		[]string{"Connection: close", "Connection: keep-alive", "Keep-Alive: timeout=5"},
		[]string{"Server: pod", "Date: Mon, 01 Jan 2024 00:00:00 GMT", "Via: 1.1 x", "Warning: 199 - \"x\""},
		[]string{"ETag: \"a\"", "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT", "Accept-Ranges: bytes", "Cache-Control: max-age=5", "Expires: 0", "Vary: *"},
		[]string{"Trailer: X-T", "Upgrade: h2c", "TE: x", "Proxy-Authenticate: Basic", "Proxy-Connection: close", "Status: 201", "Refresh: 5; url=/x", "Location: /y", "WWW-Authenticate: Basic"})
	body := d.of("", "body", "body", strings.Repeat("long ", 3000))
	framing := d.IntN(9)
	switch {
	case version == "HTTP/1.0 " && (framing == 2 || framing == 3), framing == 0:
	case framing == 1:
		fields = append(fields, "Content-Length: "+fmt.Sprint(len(body)+d.IntN(5)))
	case framing == 2, framing == 3:
		fields = append(fields, "Transfer-Encoding: "+d.of("chunked", "Chunked"))
		chunked := ""
		for rest := body; rest != ""; {
			n := min(len(rest), 1+d.IntN(5000))
			chunked += fmt.Sprintf("%x%s\r\n%s\r\n", n, d.of("", "", ";a=b", " "), rest[:n])
			rest = rest[n:]
		}
		body = chunked + d.of("0\r\n\r\n", "0\r\n\r\n", "0\r\nX-T: v\r\n\r\n", "", "0\r\n", "00\r\n\r\n")
	default:
		fields = append(fields, "Content-Length: "+fmt.Sprint(len(body)))
	}
	d.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	for _, f := range fields {
		text += f + "\r\n"
	}
	return text + "\r\n" + body
}
