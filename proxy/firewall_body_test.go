package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
)

// TestFirewallReadsBodiesAsTheyCome: in chunks, on demand, longer than it looks at, or
// not at all where a connection becomes a tunnel. What passes arrives whole.
func TestFirewallReadsBodiesAsTheyCome(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ModSecurity = true })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tea\r\n\r\nhello")
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "got=%d error=%v", n, err)
	}))
	defer web.Close()
	const rules = "SecRequestBodyLimit 3000\nSecRequestBodyNoFilesLimit 1000\n" +
		`SecRule ARGS:word "@streq secret" "id:1,phase:2,deny,log,msg:'no secrets'"` + "\n" + `SecRule REQUEST_HEADERS:User-Agent "evil" "id:2,phase:1,deny,log,msg:'no evil'"`
	snippet := func(more string) map[string]string {
		return map[string]string{"enable-modsecurity": "true", "modsecurity-snippet": more + "\n" + rules, "proxy-body-size": "0", "proxy-request-buffering": "off"}
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")),
		annotated("on", "on.test", snippet("SecRuleEngine On")),
		annotated("watch", "watch.test", snippet("")),
		annotated("part", "part.test", snippet("SecRuleEngine On\nSecRequestBodyLimitAction ProcessPartial")))
	for _, host := range []string{"on.test", "watch.test", "part.test"} {
		routed(t, p, host)
	}
	const post, urlencoded = "POST / HTTP/1.1\r\nConnection: close\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"
	sized := func(body string) string {
		return fmt.Sprintf("%s%sContent-Length: %d\r\n\r\n%s", post, urlencoded, len(body), body)
	}
	chunked := func(kind, body string) string {
		return fmt.Sprintf("%s%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", post, kind, len(body), body)
	}
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct{ name, host, request, want string }{
		{"chunks that pass", "on.test", chunked(urlencoded, "word=public"), "got=11 error=<nil>"},
		{"chunks that are refused", "on.test", chunked(urlencoded, "word=secret"), " 403 "},
		{"on demand, refused", "on.test", post + urlencoded + "Expect: 100-continue\r\nContent-Length: 11\r\n\r\nword=secret", " 403 "},
		{"on demand, passes", "on.test", post + urlencoded + "Expect: 100-continue\r\nContent-Length: 11\r\n\r\nword=public", "got=11 error=<nil>"},
		{"longer than is looked at", "on.test", sized("word=public&more=" + long), " 413 "},
		{"longer, in chunks", "on.test", chunked(urlencoded, "word=public&more="+long), " 413 "},
		{"longer, and only watched", "watch.test", sized("word=secret&more=" + long), fmt.Sprintf("got=%d error=<nil>", 17+len(long))},
		{"longer, in chunks, and only watched", "watch.test", chunked("", long), fmt.Sprintf("got=%d error=<nil>", len(long))},
		{"the beginning is refused", "part.test", sized("word=secret&more=" + long), " 403 "},
		{"the beginning passes", "part.test", sized("more=" + long), fmt.Sprintf("got=%d error=<nil>", 5+len(long))},
		{"a tunnel", "on.test", "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: tea\r\n\r\n", "hello"},
		{"a tunnel that is refused", "on.test", "GET / HTTP/1.1\r\nUser-Agent: evil\r\nConnection: Upgrade, close\r\nUpgrade: tea\r\n\r\n", " 403 "},
		{"a tunnel that is watched", "watch.test", "GET / HTTP/1.1\r\nUser-Agent: evil\r\nConnection: Upgrade\r\nUpgrade: tea\r\n\r\n", "hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", bound(p, false))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(30 * time.Second))
			request := strings.Replace(c.request, "\r\n", "\r\nHost: "+c.host+"\r\n", 1)
			go io.WriteString(conn, request) // which may be refused halfway
			var said strings.Builder
			for r := bufio.NewReader(conn); !strings.Contains(said.String(), c.want); {
				b, err := r.ReadByte()
				if err != nil {
					t.Fatalf("%v after %q, and not %q", err, said.String(), c.want)
				}
				said.WriteByte(b)
			}
		})
	}
}
