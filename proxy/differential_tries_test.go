package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestDrawnTriesSameAsNginx draws when other endpoints are asked, and what four of them do one
// after the other, and compares what the client is told at last and how often they were asked.
//
// Not drawn are short bodies that are not to be gathered: it depends on the moment whether nginx
// has one, and then sends it again.
func TestDrawnTriesSameAsNginx(t *testing.T) { compareTries(t, false) }

// TestDrawnTriesByHTTP2SameAsNginx compares pods that speak HTTP/2 with those that speak HTTP/1.1
// behind nginx, but for long bodies, which are not gathered for those, and more tries than pods: a
// connection that was there before and ends says nothing about its pod.
func TestDrawnTriesByHTTP2SameAsNginx(t *testing.T) { compareTries(t, true) }

// compareTries compares pods of nginx with ours, which may speak HTTP/2: those are asked one
// request after the other, since what ends a connection ends all that are on it.
func compareTries(t *testing.T, http2 bool) {
	binary := findNginx(t)
	count, parts := drawn(t)
	draw := triesDrawer{parts, http2}
	asked := &attempts{of: map[string]int{}}
	serve, protocol := asked.serve, "HTTP"
	if http2 {
		serve, protocol = asked.serveHTTP2, "H2C"
	}
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.BodyFiles = proxy.BodyFiles{Dir: t.TempDir(), Size: 1 << 28}
	})
	var theirs, ours []string
	for range 4 {
		theirs, ours = append(theirs, acceptEach(t, asked.serve)), append(ours, acceptEach(t, serve))
	}
	files.Put(podsOf("web", ours...)...)
	files.Put(service("web", corev1.ServicePort{Port: 80}), configMap("wide", "upstream-keepalive-connections", "0"))
	peer := freeAddress(t)
	conf := upstreamOf(theirs)
	class := ingressclass.NginxName
	cases := make([]sameCase, count)
	for i := range cases {
		cases[i] = draw.options()
		cases[i].with["backend-protocol"] = protocol
		ing := annotated(fmt.Sprint("i", i), hostOfCase(i), cases[i].with)
		ing.Spec.IngressClassName = &class
		files.Put(ing)
		conf += fmt.Sprintf("server { listen %s; server_name %s; location / { proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_read_timeout 1s; %s proxy_pass http://pods; } }\n", peer, hostOfCase(i), cases[i].inside)
	}
	runNginx(t, binary, t.TempDir(), peer, conf)
	last := hostOfCase(count)
	files.Put(annotated("last", last, map[string]string{"backend-protocol": protocol}))
	eventually(t, "the routes are served", func() bool { code, _ := get(t, bound(p, false), last, "/"); return code == 200 })
	var all sync.WaitGroup
	defer all.Wait()
	for i, c := range cases {
		requests := make([]string, 12)
		for j := range requests {
			requests[j] = draw.request(c.with["proxy-request-buffering"] != "off")
		}
		compare := func() {
			for j, request := range requests {
				var said [2]string
				for k, addr := range []string{peer, bound(p, false)} {
					said[k] = asked.told(t, fmt.Sprint(i, "-", j, "-", k), addr, hostOfCase(i), request)
				}
				if said[0] != said[1] {
					t.Errorf("%v %q:\nnginx: %s\nours:  %s", c.with, request, said[0], said[1])
				}
			}
		}
		if http2 {
			compare()
		} else {
			all.Go(compare)
		}
	}
}

// upstreamOf is the upstream "pods" of nginx, of pods that are asked whatever they have done.
func upstreamOf(pods []string) string {
	return "upstream pods { server " + strings.Join(pods, " max_fails=0; server ") + " max_fails=0; }\n"
}

// told asks under a key, and returns what the client is told after how many attempts.
func (a *attempts) told(t *testing.T, key, addr, host, request string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	status, text := ask(t, addr, host, head+"\nX-Key: "+key+"\n\n"+body)
	said := fmt.Sprintf("%d after %d", status, a.times(key))
	if status < 300 {
		said += text[strings.LastIndex(text, "\n")+1:]
	}
	return said
}

// attempts counts by X-Key how often somebody was asked, and has the pods do what X-Tries says of
// that attempt.
type attempts struct {
	mu sync.Mutex
	of map[string]int
}

func (a *attempts) times(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[key]
}

func (a *attempts) begin(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[key]++
	return a.of[key]
}

// does begins an attempt, and returns what is to be done in it.
func (a *attempts) does(key, tries string) string {
	list := strings.Split(tries, ",")
	if n := a.begin(key); n <= len(list) && list[0] != "" {
		return list[n-1]
	}
	return "200"
}

// serve is a pod.
func (a *attempts) serve(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	body, _ := io.ReadAll(r.Body)
	does := a.does(r.Header.Get("X-Key"), r.Header.Get("X-Tries"))
	switch does {
	case "close":
	case "garbage":
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nA\x00B: c\r\nContent-Length: 0\r\n\r\n")
	case "half":
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Le")
	case "stall":
		io.Copy(io.Discard, c) // until the other side has had enough
	default:
		text := fmt.Sprintf("%s %q", r.Method, body)
		if r.Method == "HEAD" {
			text = ""
		}
		fmt.Fprintf(c, "HTTP/1.1 %s X\r\nContent-Length: %d\r\nX-Said: it \"is\" %s\r\nLocation: /at\r\nConnection: close\r\n\r\n%s", does, len(text), does, text)
	}
}

// triesDrawer draws when another endpoint is asked.
type triesDrawer struct {
	snippetDrawer
	http2 bool // is what pods of ours speak
}

func (d triesDrawer) options() sameCase {
	c := sameCase{with: map[string]string{"proxy-read-timeout": "1"}}
	next := append([]string{d.of("error", "error", "http_503")}, d.some(3, []string{"timeout"}, []string{"invalid_header"}, []string{"http_500"}, []string{"http_502"}, []string{"http_503"}, []string{"http_504"}, []string{"http_403"}, []string{"http_404"}, []string{"http_429"}, []string{"non_idempotent"})...)
	if d.IntN(10) == 0 {
		next = []string{"off"}
	}
	slices.Sort(next)
	c.with["proxy-next-upstream"] = strings.Join(slices.Compact(next), " ")
	c.inside = "proxy_next_upstream " + c.with["proxy-next-upstream"] + "; "
	tries := "3"
	if d.IntN(2) == 0 {
		tries = d.of("1", "2", "4", map[bool]string{false: "9", true: "4"}[d.http2])
		c.with["proxy-next-upstream-tries"] = tries
	}
	c.inside += "proxy_next_upstream_tries " + tries + "; "
	if d.IntN(3) == 0 {
		c.with["proxy-request-buffering"] = "off"
		c.inside += "proxy_request_buffering off;"
	}
	return c
}

func (d triesDrawer) request(gathered bool) string {
	does := make([]string, 1+d.IntN(5))
	for i := range does {
		does[i] = d.of("close", "close", "garbage", "half", "500", "502", "503", "504", "403", "404", "429", "200", "400", "201")
		if !d.http2 && d.IntN(12) == 0 {
			does[i] = "stall"
		}
	}
	method := d.of("GET", "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH")
	text := method + " /x\nX-Tries: " + strings.Join(does, ",")
	if method[0] == 'P' && d.IntN(4) > 0 {
		switch short := d.IntN(2) == 0; {
		case short && gathered:
			text += "\n\nbody"
		case !short && !(gathered && d.http2):
			text += "\n\n" + strings.Repeat("long ", 20_000)
		}
	}
	return text
}
