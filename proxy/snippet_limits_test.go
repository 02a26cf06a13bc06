package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestLimitsOfSnippets: zones of the http-snippet count for all routes that name them, by their
// own keys, and refuse with the status that the snippet says, or the proxy.
func TestLimitsOfSnippets(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"} })
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", listenerOf(t, "web")), configMap("wide", "limit-req-status-code", "429",
		"http-snippet", `limit_req_zone $binary_remote_addr zone=all:10m rate=1r/m; map $http_x_key $key { "" ""; default $http_x_key; } limit_req_zone $key zone=keys:1m rate=60r/m sync;
		limit_conn_zone $key zone=under_way:10m;`))
	putAnnotated(files, "one", "/one", "web", "configuration-snippet", `limit_req zone=all burst=3 nodelay;`)
	putAnnotated(files, "two", "/two", "web", "configuration-snippet", `limit_req zone=all burst=3; limit_req_status 418;`)
	putAnnotated(files, "keys", "/keys", "web", "configuration-snippet", `limit_req zone=keys; error_page 429 =200 @slow;`, "server-snippet", `location @slow { return 420 slowly; }`)
	putAnnotated(files, "conns", "/conns", "web", "configuration-snippet", `limit_conn under_way 2; limit_conn_status 430;`, "limit-connections", "9")
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "moved.test", "/conns"); return code == 200 })
	codes := func(path string, n int) (list string) {
		for range n {
			code, _ := ask(t, addr, "moved.test", path)
			list += fmt.Sprint(code, " ")
		}
		return list
	}
	for _, c := range [][2]string{
		{codes("/one", 2) + codes("/two", 2) + codes("/one", 1) + codes("/two", 1), "200 200 200 200 429 418 "},
		{codes("/keys", 5), "200 200 200 200 200 "}, // which have no key
		{codes("/keys\nX-Key: a", 2) + codes("/keys\nX-Key: b", 1), "200 200 200 "},
	} {
		if c[0] != c[1] {
			t.Errorf("answered %s, want %s", c[0], c[1])
		}
	}
	if _, said := ask(t, addr, "moved.test", "/keys\nX-Key: b"); said[len(said)-6:] != "slowly" {
		t.Errorf("the second of a key in a second: %s", said)
	}
	// Of one key two are under way at once, whatever the route.
	release, begun := make(chan struct{}), make(chan struct{}, 2)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Slow", "yes")
		if r.Method != "HEAD" {
			begun <- struct{}{}
			<-release
		}
	}))
	defer slow.Close()
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	files.Put(service("slow", corev1.ServicePort{Port: 80}), slice("slow", "", strings.TrimPrefix(slow.URL, "http://")))
	putAnnotated(files, "slow", "/conns/slow", "slow", "configuration-snippet", `limit_conn under_way 2;`)
	eventually(t, "the slow route is there", func() bool {
		_, said := ask(t, addr, "moved.test", "HEAD /conns/slow\nX-Key: z")
		return strings.Contains(said, "X-Slow: yes")
	})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if code, said := ask(t, addr, "moved.test", "/conns/slow\nX-Key: k"); code != 200 {
				t.Errorf("one of two: %d %s", code, said)
			}
		})
		select {
		case <-begun:
		case <-time.After(30 * time.Second):
			t.Fatal("one of two does not come to the backend")
		}
	}
	if third, other, none := codes("/conns/x\nX-Key: k", 1), codes("/conns/x\nX-Key: l", 1), codes("/conns/x", 1); third+other+none != "430 200 200 " {
		t.Errorf("beside two: a third %s, of another key %s, without one %s", third, other, none)
	}
	free()
	all.Wait()
	eventually(t, "the key is free again", func() bool { return codes("/conns/x\nX-Key: k", 1) == "200 " })
}
