package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// filter gives every route the settings s.
func (r *rig) filter(s *filter.Settings) {
	t := r.table()
	for rt := range t.Routes() {
		rt.Filters = s
	}
	r.routes.SetTable(t, []dispatch.Forwarder{r.engine.Backend(t.Backends[0])})
}

func text(s string) *filter.Template {
	t, err := filter.ParseTemplate(s)
	if err != nil {
		panic(err)
	}
	return t
}

func target(s string) *filter.Target {
	t, err := filter.ParseTarget(s)
	if err != nil {
		panic(err)
	}
	return t
}

// Each option does through HTTP what it is for. The backend answers with what it
// was asked.
func TestOptions(t *testing.T) {
	here, elsewhere := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	users, _, err := filter.ParseUsers([]byte("u:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"))
	if err != nil {
		t.Fatal(err)
	}
	const get = "GET /a/b?q HTTP/1.1\r\nHost: shop\r\n"
	const password = "Authorization: Basic dTpwYXNzd29yZA==\r\n"
	chunked := func(n int) string {
		return fmt.Sprintf("POST /a HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n))
	}
	for _, c := range []struct {
		key, raw string
		s        filter.Settings
		want     []string
	}{
		{"proxy-body-size", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world", filter.Settings{MaxBody: 10}, []string{"HTTP/1.1 413 "}},
		{"proxy-body-size/fits", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", filter.Settings{MaxBody: 5}, []string{"HTTP/1.1 200 ", "hello"}},
		{"proxy-body-size/chunked", chunked(20_000), filter.Settings{MaxBody: 10_000}, []string{"HTTP/1.1 413 ", "Connection: close"}},
		{"proxy-body-size/chunked, fits", chunked(1000), filter.Settings{MaxBody: 1000}, []string{"HTTP/1.1 200 ", strings.Repeat("x", 1000)}},
		{"enable-cors/preflight", "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://b\r\n\r\n", filter.Settings{CORS: &filter.CORS{Origins: []string{"https://b"}, Methods: "GET"}},
			[]string{"HTTP/1.1 204 ", "Access-Control-Allow-Origin: https://b\r\n", "Access-Control-Allow-Methods: GET\r\n"}},
		{"enable-cors", get + "Origin: https://b\r\n\r\n", filter.Settings{CORS: &filter.CORS{Origins: []string{"*"}, Credentials: true}},
			[]string{"HTTP/1.1 200 ", "Access-Control-Allow-Origin: *\r\n", "Access-Control-Allow-Credentials: true\r\n"}},
		{"app-root", "GET / HTTP/1.1\r\nHost: shop\r\n\r\n", filter.Settings{AppRoot: target("/app")}, []string{"HTTP/1.1 302 ", "Location: http://shop/app\r\n"}},
		{"permanent-redirect", get + "\r\n", filter.Settings{Redirect: &filter.Redirect{Code: 301, To: target("https://new/")}}, []string{"HTTP/1.1 301 ", "Location: https://new/\r\n"}},
		{"temporal-redirect", get + "\r\n", filter.Settings{Redirect: &filter.Redirect{Code: 302, To: target("https://new/")}}, []string{"HTTP/1.1 302 "}},
		{"from-to-www-redirect", get + "\r\n", filter.Settings{CanonicalHost: "www.shop"}, []string{"HTTP/1.1 308 ", "Location: http://www.shop/a/b?q\r\n"}},
		{"allowlist-source-range", get + "\r\n", filter.Settings{Access: &filter.Access{Allow: here}}, []string{"HTTP/1.1 200 "}},
		{"allowlist-source-range/refused", get + "\r\n", filter.Settings{Access: &filter.Access{Allow: elsewhere}}, []string{"HTTP/1.1 403 "}},
		{"denylist-source-range", get + "\r\n", filter.Settings{Access: &filter.Access{Deny: here}}, []string{"HTTP/1.1 403 "}},
		{"auth-type", get + "\r\n", filter.Settings{Basic: &filter.Basic{Realm: "r", Users: users}}, []string{"HTTP/1.1 401 ", "WWW-Authenticate: Basic realm=\"r\"\r\n"}},
		{"auth-type/password", get + password + "\r\n", filter.Settings{Basic: &filter.Basic{Users: users}}, []string{"HTTP/1.1 200 "}},
		{"satisfy", get + password + "\r\n", filter.Settings{SatisfyAny: true, Basic: &filter.Basic{Users: users}, Access: &filter.Access{Allow: elsewhere}}, []string{"HTTP/1.1 200 "}},
		{"rewrite-target", get + "\r\n", filter.Settings{Rewrite: &filter.Rewrite{Pattern: regexp.MustCompile("^/a(/|$)(.*)"), Target: text("/$2")}}, []string{"HTTP/1.1 200 ", "GET /b?q host"}},
		{"upstream-vhost", get + "\r\n", filter.Settings{UpstreamHost: text("inner")}, []string{"HTTP/1.1 200 ", "host=inner"}},
		{"x-forwarded-prefix", get + "\r\n", filter.Settings{ForwardedPrefix: text("/p")}, []string{"HTTP/1.1 200 ", "prefix=/p"}},
		{"custom-headers", get + "\r\n", filter.Settings{Headers: []filter.Field{{Name: "X-Frame-Options", Value: text("DENY")}}}, []string{"HTTP/1.1 200 ", "X-Frame-Options: DENY\r\n"}},
	} {
		t.Run(c.key, func(t *testing.T) {
			r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				fmt.Fprintf(w, "%s %s host=%s prefix=%s %s", req.Method, req.RequestURI, req.Host, req.Header.Get("X-Forwarded-Prefix"), body)
			}))
			r.filter(&c.s)
			got := r.exchange(c.raw)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("answered %.600q, which lacks %q", got, want)
				}
			}
		})
	}
}

// A client that asks too much is refused, and its other requests go on.
func TestOptionLimits(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	status := func() int {
		resp, _ := r.get("/")
		return resp.StatusCode
	}
	t.Run("limit-rpm", func(t *testing.T) {
		r.filter(&filter.Settings{Limits: &filter.Limits{PerMinute: 1, Burst: 2, Zone: "rpm"}})
		if a, b, c, d := status(), status(), status(), status(); a != 200 || b != 200 || c != 200 || d != 503 {
			t.Errorf("answered %d %d %d %d", a, b, c, d)
		}
	})
	t.Run("limit-rps survives another table", func(t *testing.T) {
		s := &filter.Settings{Limits: &filter.Limits{PerMinute: 1, Burst: 1, Zone: "again", Status: 429}}
		for i, want := range []int{200, 200, 429} {
			r.filter(s)
			if got := status(); got != want {
				t.Errorf("request %d: %d, want %d", i, got, want)
			}
		}
	})
	t.Run("limit-connections", func(t *testing.T) {
		asked, release := make(chan struct{}), make(chan struct{})
		r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, func(_ http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/wait" {
				close(asked)
				<-release
			}
		}))
		r.filter(&filter.Settings{Limits: &filter.Limits{Connections: 1}})
		waited := make(chan int)
		go func() {
			resp, err := http.Get("http://" + r.addr + "/wait")
			if err != nil {
				t.Error(err)
				waited <- 0
				return
			}
			resp.Body.Close()
			waited <- resp.StatusCode
		}()
		<-asked
		if resp, _ := r.get("/"); resp.StatusCode != 503 {
			t.Errorf("the second at once: %d", resp.StatusCode)
		}
		close(release)
		if got := <-waited; got != 200 {
			t.Errorf("the first: %d", got)
		}
		if resp, _ := r.get("/"); resp.StatusCode != 200 {
			t.Errorf("the next: %d", resp.StatusCode)
		}
	})
}

// A tunnel counts as a connection until it ends.
func TestOptionLimitConnectionsCountsTunnels(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		req, _, err := readRequest(in)
		switch {
		case err != nil:
		case req.Header.Get("Upgrade") != "":
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			io.Copy(c, in)
		default:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		}
	}))
	r.filter(&filter.Settings{Limits: &filter.Limits{Connections: 1}})
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("the upgrade got %v, %v", resp, err)
	}
	if resp, _ := r.get("/"); resp.StatusCode != 503 {
		t.Errorf("beside the tunnel: %d, want 503", resp.StatusCode)
	}
	c.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if resp, _ := r.get("/"); resp.StatusCode == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the tunnel has ended and still counts")
		}
	}
}
