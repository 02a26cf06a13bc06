package e2e

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	networkingv1 "k8s.io/api/networking/v1"
)

// copies are what somebody was sent copies of, by what the field X-Copy says.
type copies struct {
	mu  sync.Mutex
	saw map[string]string
}

// start starts who is sent them, and answers with nothing.
func (c *copies) start() *httptest.Server {
	told := pod("copy")
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, of := httptest.NewRecorder(), r.Header.Get("X-Copy")
		r.Host, _, _ = strings.Cut(r.Host, ":")
		for name := range r.Header { // which say who the client is, and copies have here, too
			if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains([]string{"X-Original-Forwarded-For", "X-Real-Ip", "X-Scheme", "X-Auth-User"}, name) {
				r.Header.Del(name)
			}
		}
		told.ServeHTTP(said, r)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.saw[of] += said.Body.String()
	}))
}

// of waits for the copy of a request that a pod has been asked; of others there is none.
func (c *copies) of(name string, asked bool) []string {
	patience := 20 * time.Millisecond
	if asked {
		patience = 3 * time.Second
	}
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		said, came := c.saw[name]
		c.mu.Unlock()
		if came || time.Now().After(until) {
			return strings.Split(said, "\n")
		}
	}
}

// drawMirrors draws an Ingress whose requests are copied.
func (w *ingressWorld) drawMirrors(host string) {
	c := &copies{saw: map[string]string{}}
	to := c.start()
	w.ends = append(w.ends, to.Close)
	options := w.draw(3, []string{"mirror-request-body", "off", "on"}, []string{"mirror-host", "m.example"}, []string{"rewrite-target", "/r"}, []string{"upstream-vhost", "v.example"},
		[]string{"whitelist-source-range", "127.0.0.0/8", "10.0.0.0/8"}, []string{"custom-headers", "default/added"}, []string{"auth-url", w.auth}, []string{"ssl-redirect", "false"},
		[]string{"proxy-request-buffering", "off"})
	options["mirror-target"] = to.URL + pick(w.dice, "$request_uri", "/copies", "/copies$request_uri")
	i := w.ingress(host, options, w.seldom(2), rule{"/", networkingv1.PathTypePrefix}, rule{"/a", networkingv1.PathTypePrefix})
	i.UID = types.UID(host) // of which its location has its name there
	w.ingress(host, nil, false, rule{"/b", networkingv1.PathTypePrefix})
	first := len(w.requests)
	w.ask(host, true, []string{"/", "/a", "/a/b?x=1&y=%2f", "/b", "/c%20d", "/?status=404"}, []string{"X-May", "200", "401"}, []string{"X-Own", "1"}, []string{"Cookie", "a=b"}, []string{"X-Forwarded-For", "192.0.2.1, 10.0.0.1"}, []string{"X-Original-Uri", "/x"})
	for n := range w.requests[first:] {
		r := &w.requests[first+n]
		if r.copies = c; options["mirror-request-body"] == "off" { // there the copy has its length, and waits for it
			r.body = ""
		}
	}
}
