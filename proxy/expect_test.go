package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestRefusalsComeBeforeTheBody: who asks whether to send a body is refused without
// being told to go on, and told so where the request may pass.
func TestRefusalsComeBeforeTheBody(t *testing.T) {
	files, p := start(t, trusting)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		annotated("size", "proxy-body-size.test", map[string]string{"proxy-body-size": "10"}),
		annotated("basic", "auth-type.test", map[string]string{"auth-type": "basic", "auth-secret": "missing"}),
		annotated("deny", "denylist-source-range.test", map[string]string{"denylist-source-range": "10.0.0.0/8"}),
		annotated("auth", "auth-url.test", map[string]string{"auth-url": "http://missing.default.svc/"}),
		annotated("one", "limit-connections.test", map[string]string{"limit-connections": "1"}))
	addr := bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "limit-connections.test", "/"); return code == 200 })
	dial := func(host, more string, length int) (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nExpect: 100-Continue\r\nContent-Length: %d\r\n%s\r\n", host, length, more)
		return c, bufio.NewReader(c)
	}
	for _, k := range []struct {
		host, more string
		length     int
		want       int
	}{
		{"proxy-body-size.test", "", 11, 413},
		{"proxy-body-size.test", "", 100_000, 413},
		{"auth-type.test", "", 5, 503},
		{"denylist-source-range.test", "X-Forwarded-For: 10.0.0.1\r\n", 5, 403},
		{"auth-url.test", "", 5, 500},
		{"nobody.test", "", 5, 404},
		{"bad host", "", 5, 400},
	} {
		_, r := dial(k.host, k.more, k.length)
		if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, fmt.Sprintf("HTTP/1.1 %d ", k.want)) {
			t.Errorf("%s, %d bytes: %q %v, want %d at once", k.host, k.length, line, err, k.want)
		}
	}
	for _, length := range []int{10, 20_000} { // in memory, and streamed
		host := "limit-connections.test"
		c, r := dial(host, "", length)
		if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%d bytes: %q %v", length, line, err)
		}
		r.ReadString('\n')
		io.WriteString(c, strings.Repeat("x", length))
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d bytes: %+v %v", length, resp, err)
		}
		io.Copy(io.Discard, resp.Body)
		// The connection serves on.
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("after %d bytes: %+v %v", length, resp, err)
		}
	}
	// One that was told to go on and leaves instead gives back what it took.
	for range 3 {
		c, r := dial("limit-connections.test", "", 5)
		if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q %v", line, err)
		}
		c.Close()
		eventually(t, "it is forgotten", func() bool { code, _ := get(t, addr, "limit-connections.test", "/"); return code == 200 })
	}
}
