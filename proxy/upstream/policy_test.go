package upstream_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// named answers with name.
func named(t *testing.T, name string) string {
	return play(t, say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name))).addr
}

// A client comes back to the pod that its cookie names, also after that pod
// refused it once.
func TestStickyCookie(t *testing.T) {
	addrs := []string{named(t, "a"), named(t, "b"), named(t, "c")}
	_, b := newEngine(t, upstream.Options{})
	policy := balance.Policy{Cookie: balance.Cookie{Name: "route", Path: "/shop"}}
	b.SetEndpoints(endpoints(addrs...).Arrange(policy, []byte("uid"), balance.CookieKey{}))
	ask := func(cookie string) (pod, next string) {
		ex := &exchange.Exchange{}
		request(ex, "GET", "/shop/x")
		if cookie != "" {
			ex.Request.Header.Add("Cookie", cookie)
		}
		b.Forward(ex)
		defer ex.Response.Body.Close()
		text, err := io.ReadAll(ex.Response.Body)
		if err != nil {
			t.Fatal(err)
		}
		next, attributes, _ := strings.Cut(string(ex.Response.Header.Get("Set-Cookie")), ";")
		if next != "" && attributes != " Path=/shop; HttpOnly" {
			t.Errorf("the cookie has the attributes %q", attributes)
		}
		return string(text), next
	}
	pods := map[string]bool{}
	for range 40 {
		pod, cookie := ask("")
		pods[pod] = true
		for range 3 {
			if again, next := ask(cookie); again != pod || next != "" {
				t.Fatalf("%s at first, then %s with the cookie %q", pod, again, next)
			}
		}
	}
	if len(pods) != 3 {
		t.Errorf("40 clients are on %v", pods)
	}
}

// Over the limit the answer is 503, at once, and the limit counts what is under
// way, tunnels and bodies that are still being read included.
func TestRequestLimit(t *testing.T) {
	release := make(chan struct{})
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfi")
			<-release
			io.WriteString(c, "ne")
		}
	})
	e, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr).Arrange(balance.Policy{MaxRequests: 2}, nil, balance.CookieKey{}))
	var open []*exchange.Exchange
	for range 2 {
		ex := &exchange.Exchange{}
		request(ex, "GET", "/")
		b.Forward(ex)
		if ex.Response.Status != 200 {
			t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
		}
		open = append(open, ex)
	}
	for range 3 {
		if status, body := forward(b, "GET", ""); status != 503 || !strings.Contains(body, "as many requests as it may have") {
			t.Errorf("over the limit: %d %q", status, body)
		}
	}
	if n := metric(t, e, "quayside_http_upstream_failures_total"); n != 3 {
		t.Errorf("%v failures were counted, want 3", n)
	}
	open[0].Response.Body.Close() // gives up half of its body
	close(release)
	for range 5 {
		if status, body := forward(b, "GET", ""); status != 200 || body != "fine" {
			t.Errorf("with room again: %d %q", status, body)
		}
	}
	open[1].Response.Body.Close()
}

// A pod that loses every request, but takes connections, goes out of turn.
func TestSickPodGoesOutOfTurn(t *testing.T) {
	sick := play(t, func(_ net.Conn, r *bufio.Reader) { http.ReadRequest(r) })
	addrs := []string{sick.addr, named(t, "a"), named(t, "b")}
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(addrs...))
	failed := 0
	for range 200 {
		if status, _ := forward(b, "POST", "body"); status != 200 {
			failed++
		}
	}
	if failed < 5 || failed > 7 {
		t.Errorf("%d of 200 requests failed, want the five until the pod is out, and a probe or two", failed)
	}
}
