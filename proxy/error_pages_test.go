package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestErrorPagesOfPaths: an error page that is a path is what the route of that path answers,
// with all that it asks, and is sent nothing that the first route's options put in. What the
// first route holds while a request is under way it gives back, and no body is lost in between.
func TestErrorPagesOfPaths(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(
		service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")),
		service("pages", corev1.ServicePort{Port: 80}), slice("pages", "", listenerOf(t, "pages")),
		service("empty", corev1.ServicePort{Port: 80}),
		sameUsersSecret(),
	)
	putAnnotated(files, "app", "/app", "web", "limit-connections", "2", "upstream-vhost", "inner.test", "configuration-snippet", `
proxy_intercept_errors on;
error_page 404 =200 /pages/index.html?spa;
error_page 500 /staff/sorry;
error_page 502 /nowhere;
error_page 410 =200 /pages/status/410;
proxy_set_header Authorization "Bearer of-app"; proxy_set_header X-Own of-app;`)
	putAnnotated(files, "down", "/down", "empty", "configuration-snippet", `error_page 503 /pages/down;`)
	putAnnotated(files, "pages", "/pages", "pages", "configuration-snippet", `add_header X-Page yes always;`)
	putAnnotated(files, "staff", "/staff", "web", "auth-type", "basic", "auth-secret", "users")
	eventually(t, "the routes are served", func() bool {
		a, _ := get(t, addr, "moved.test", "/app/x")
		b, _ := get(t, addr, "moved.test", "/pages/x")
		c, _ := get(t, addr, "moved.test", "/down/x")
		return a == 200 && b == 200 && c == 503
	})
	const right = "\nAuthorization: Basic YW5uOnRlc3Q="
	for request, want := range map[string]string{
		"/app/x":              "200|web GET /app/x host=inner.test|X-Own=\"of-app\"",
		"/app/status/404?a=b": "200|pages GET /pages/index.html?spa host=moved.test body=\"\"|X-Page: yes",
		"POST /app/status/404\nContent-Type: a/b\n\nbody5": "200|pages GET /pages/index.html?spa host=moved.test body=\"\"",
		"/app/status/500":         "401|Www-Authenticate: Basic realm=",
		"/app/status/500" + right: "500|web GET /staff/sorry",
		"/app/status/502":         "404|no Ingress has a rule",
		"/app/status/410":         "200|pages GET /pages/status/410",
		"/app/status/503":         "503|web GET /app/status/503",
		"/down":                   "503|pages GET /pages/down",
		"HEAD /down":              "503|X-Page: yes",
	} {
		status, said := ask(t, addr, "moved.test", request)
		for i, part := range strings.Split(want, "|") {
			if i == 0 && strconv.Itoa(status) != part || i > 0 && !strings.Contains(said, part) {
				t.Errorf("%q: %d %s, want %s", request, status, said, want)
			}
		}
		if strings.Contains(said, "of-app") && !strings.Contains(said, " /app/") {
			t.Errorf("%q: another route is sent what is of the first: %s", request, said)
		}
	}
	// A body of any length comes before the next request on the connection.
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			defer client.CloseIdleConnections()
			for n := range 20 {
				req, _ := http.NewRequest("POST", fmt.Sprintf("http://%s/app/status/404?%d.%d", addr, i, n), strings.NewReader(strings.Repeat("x", n*5000)))
				req.Host = "moved.test"
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				said, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				limited := resp.StatusCode == 503 // by limit-connections, as long as others are under way
				if !limited && (resp.StatusCode != 200 || !strings.HasPrefix(string(said), "pages GET /pages/index.html?spa")) {
					t.Errorf("%d %s", resp.StatusCode, said)
				}
			}
		})
	}
	all.Wait()
	if status, said := ask(t, addr, "moved.test", "/app/x"); status != 200 {
		t.Errorf("connections are counted that have ended: %d %s", status, said)
	}
}
