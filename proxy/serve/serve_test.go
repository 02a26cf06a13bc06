package serve_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

func closedAddr(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestHeaders(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			var head strings.Builder
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if line == "\r\n" {
					break
				}
				head.WriteString(line)
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nServer: backend/1\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nContent-Length: %d\r\n\r\n%s",
				head.Len(), head.String())
		}
	}))
	got := r.exchange("GET /a HTTP/1.1\r\nhost: shop.example:8080\r\nX-lower: Kept\r\nConnection: keep-alive, X-Secret\r\nX-Secret: 1\r\nTE: trailers\r\nX-Real-IP: 6.6.6.6\r\nX-Request-ID: given\r\n\r\n")
	head, asked, _ := strings.Cut(got, "\r\n\r\n")
	for _, want := range []string{"\r\nETag: \"x\"\r\n", "\r\nServer: backend/1\r\n", "a=1\r\n", "b=2", "\r\nDate: "} {
		if !strings.Contains(head+"\r\n", want) {
			t.Errorf("the response lacks %q: %q", want, head)
		}
	}
	for _, no := range []string{"X-Hop", "Keep-Alive"} {
		if strings.Contains(head, no) {
			t.Errorf("the response has %s: %q", no, head)
		}
	}
	want := "GET /a HTTP/1.1\r\nHost: shop.example:8080\r\nX-lower: Kept\r\nX-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\n" +
		"X-Forwarded-Host: shop.example:8080\r\nX-Forwarded-Port: 8080\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Scheme: http\r\nX-Scheme: http\r\nX-Request-ID: given\r\n"
	if asked != want {
		t.Errorf("the backend was sent\n%q, want\n%q", asked, want)
	}
}

func TestServerFieldIsAddedWhereItLacks(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	resp, _ := r.get("/")
	if resp.Header.Get("Server") != "quayside" || resp.Header.Get("Date") == "" {
		t.Errorf("header %v", resp.Header)
	}
}

func TestPipelining(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	got := r.exchange(strings.Repeat("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 5) + "HEAD /y HTTP/1.1\r\nHost: a\r\n\r\nGET /z HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive, Close\r\n\r\nGET /never HTTP/1.1\r\nHost: a\r\n\r\n")
	if n := strings.Count(got, "body=\"abc\""); n != 5 {
		t.Errorf("%d of 5 POSTs were answered: %q", n, got)
	}
	if strings.Contains(got, "HEAD /y") || !strings.Contains(got, "GET /z") || strings.Contains(got, "never") {
		t.Errorf("answered %q", got)
	}
}

func TestStreaming(t *testing.T) {
	next := make(chan string)
	h := func(w http.ResponseWriter, req *http.Request) {
		if n := req.URL.Query().Get("length"); n != "" {
			w.Header().Set("Content-Length", n)
		}
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		for s := range next {
			io.WriteString(w, s)
			w.(http.Flusher).Flush()
		}
	}
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, h))
	for _, path := range []string{"/?length=6", "/"} {
		next = make(chan string)
		// The head arrives before the body begins, and each event on its own.
		resp, err := http.Get("http://" + r.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		for _, event := range []string{"one", "two"} {
			next <- event
			n, err := io.ReadAtLeast(resp.Body, buf, len(event))
			if err != nil || string(buf[:n]) != event {
				t.Errorf("%s: read %q, %v, want %q", path, buf[:n], err, event)
			}
		}
		close(next)
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Errorf("%s: the end: %q, %v", path, rest, err)
		}
		resp.Body.Close()
	}
}

func TestLargeBodiesBothWays(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || !bytes.Equal(body, big) {
			w.WriteHeader(500)
		}
		w.Write(body)
	}))
	for _, length := range []int64{int64(len(big)), -1} {
		req, _ := http.NewRequest("POST", "http://"+r.addr+"/", io.LimitReader(bytes.NewReader(big), int64(len(big))))
		req.ContentLength = length
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || err != nil || !bytes.Equal(got, big) {
			t.Errorf("length %d: status %d, %d bytes back, %v", length, resp.StatusCode, len(got), err)
		}
	}
}

// A response cut short must not look complete, whatever the client speaks.
func TestTruncation(t *testing.T) {
	half := strings.Repeat("x", 20_000)
	answers := map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + half,
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n" + half + "\r\n",
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
				readRequest(bufio.NewReader(c))
				io.WriteString(c, answer)
			}))
			resp, err := http.Get("http://" + r.addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%d bytes look complete", len(body))
			}
		})
	}
}

// A body that ends with its connection is what an HTTP/1.0 client gets. That it
// was cut short shows only in how the connection ends: in a reset, and over TLS
// without the alert that says that all was sent.
func TestTruncationUntilClose(t *testing.T) {
	truncated := rawBackend(t, func(c net.Conn) {
		readRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n"+strings.Repeat("x", 20_000)+"\r\n")
	})
	plain := func(r *rig) net.Conn {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		name    string
		options serve.Options
		dial    func(*rig) net.Conn
	}{
		{"plain", serve.Options{}, plain},
		{"PROXY protocol", serve.Options{ProxyProtocol: true}, plain},
		{"TLS", serve.Options{}, (*rig).dialTLS},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := c.dial(newRig(t, c.options, upstream.Options{}, truncated))
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(30 * time.Second))
			io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			if body, err := io.ReadAll(conn); err == nil || os.IsTimeout(err) {
				t.Errorf("%d bytes look complete (%v)", len(body), err)
			}
		})
	}
}

func TestHTTP10(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			if _, _, err := readRequest(in); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
			time.Sleep(20 * time.Millisecond)
			io.WriteString(c, "3\r\ntwo\r\n0\r\n\r\n")
		}
	}))
	got := r.exchange("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
	if !strings.HasSuffix(got, "\r\n\r\nonetwo") || strings.Contains(got, "chunked") || !strings.Contains(got, "Connection: close") {
		t.Errorf("answered %q", got)
	}
}

func TestSlowHeadIsGivenUp(t *testing.T) {
	r := newRig(t, serve.Options{Timeout: 500 * time.Millisecond}, upstream.Options{}, backend(t, echo))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := time.Now()
	go func() { // a byte now and then must not keep it alive
		for _, b := range "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: " + strings.Repeat("x", 1000) {
			if _, err := c.Write([]byte{byte(b)}); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	got, _ := io.ReadAll(c)
	if !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("answered %q", got)
	}
	if d := time.Since(start); d > 25*time.Second {
		t.Errorf("given up after %v", d)
	}
}

// A connection that was opened in advance and not used gets no answer to a
// question it never asked.
func TestSilentConnectionIsClosedSilently(t *testing.T) {
	r := newRig(t, serve.Options{Timeout: 50 * time.Millisecond}, upstream.Options{}, backend(t, echo))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if got, err := io.ReadAll(c); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSlowBodyIsGivenUp(t *testing.T) {
	r := newRig(t, serve.Options{Timeout: 500 * time.Millisecond}, upstream.Options{}, backend(t, echo))
	got := r.exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 10_000))
	if !strings.HasPrefix(got, "HTTP/1.1 408 ") {
		t.Errorf("answered %q", got)
	}
}

func TestProxyProtocol(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	show := func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, req.Header.Get("X-Real-IP")) }
	const header = "PROXY TCP4 192.0.2.55 198.51.100.1 5000 80\r\n"
	for _, c := range []struct {
		name    string
		trusted []netip.Prefix
		raw     string
		want    string
	}{
		{"of a trusted proxy", trusted, header, "192.0.2.55"},
		{"of a stranger", nil, header, "127.0.0.1"},
		{"none of a stranger", nil, "", "127.0.0.1"},
		{"for itself", trusted, "PROXY UNKNOWN\r\n", "127.0.0.1"},
		{"of version 2", trusted, "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x37\xc6\x33\x64\x01\x13\x88\x00\x50", "192.0.2.55"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, serve.Options{ProxyProtocol: true, TrustedProxies: c.trusted}, upstream.Options{}, backend(t, show))
			got := r.exchange(c.raw + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if !strings.HasSuffix(got, "\r\n\r\n"+c.want) {
				t.Errorf("answered %q, want the client to be %s", got, c.want)
			}
		})
	}
}

// Who has to send a PROXY header is not served without, nor with half of one.
func TestProxyProtocolIsStrict(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	for _, raw := range []string{
		"", "PROXY TCP4 192.0.2.55 198.51.100.1 05000 80\r\n", "PROXY TCP4 192.0.2.55 198.51.100.1 5000 80\n\r\n", "\r\n\r\n\x00\r\nQUIT\n\x31\x11\x00\x0c",
	} {
		r := newRig(t, serve.Options{ProxyProtocol: true, TrustedProxies: trusted}, upstream.Options{}, backend(t, echo))
		if got := r.exchange(raw + "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); strings.HasPrefix(got, "HTTP/1.1 2") {
			t.Errorf("%q is answered %q", raw, got)
		}
	}
	r := newRig(t, serve.Options{ProxyProtocol: true, TrustedProxies: trusted, Timeout: 300 * time.Millisecond}, upstream.Options{}, backend(t, echo))
	if got := r.exchange("PROXY TCP4 192.0"); strings.HasPrefix(got, "HTTP/1.1 2") {
		t.Errorf("a header that never ends is answered %q", got)
	}
}

func TestListenersComeAndGo(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	first := serve.Listener{Address: "127.0.0.1:0"}
	taken, err := net.Listen("tcp", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	second := serve.Listener{Address: "127.0.0.3:0"}
	third := serve.Listener{Address: taken.Addr().String()}
	c, err := net.Dial("tcp", r.addr) // outlives its listener
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	ask := func() error {
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	state := func(l serve.Listener) serve.ListenerState {
		for _, s := range r.server.Listeners() {
			if s.Listener == l {
				return s
			}
		}
		return serve.ListenerState{}
	}
	waitFor := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it does not happen that %s: %+v", what, r.server.Listeners())
			}
		}
	}
	r.server.SetListeners([]serve.Listener{first, second, third})
	waitFor("the second listens", func() bool { return state(second).Bound != "" })
	waitFor("the third is told to be taken", func() bool { return strings.Contains(state(third).Error, "in use") })
	if state(first).Bound != r.addr {
		t.Errorf("the first listener was opened again: %v", state(first))
	}
	r.server.SetListeners([]serve.Listener{second})
	waitFor("the first is closed", func() bool { c, err := net.Dial("tcp", r.addr); _ = closeIf(c); return err != nil })
	if err := ask(); err != nil {
		t.Errorf("a connection of a listener that went: %v", err)
	}
}

func closeIf(c net.Conn) error {
	if c != nil {
		return c.Close()
	}
	return nil
}

func TestDrain(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{})
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		close(asked)
		<-release
		io.WriteString(w, "done")
	}))
	type result struct {
		resp *http.Response
		body string
	}
	results := make(chan result)
	go func() {
		resp, body := r.get("/")
		results <- result{resp, body}
	}()
	<-asked
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			break
		}
		c.Close()
		if time.Now().After(deadline) {
			t.Fatal("a draining server goes on accepting")
		}
	}
	close(release)
	got := <-results
	if got.body != "done" || !got.resp.Close {
		t.Errorf("the request under way got %q, close %v", got.body, got.resp.Close)
	}
	<-stopped
}

// A connection that never asked anything does not hold up a drain, nor does a
// drain that ends well claim that it cut somebody.
func TestDrainLeavesTheSilent(t *testing.T) {
	var log strings.Builder
	r := newRig(t, serve.Options{GracePeriod: 30 * time.Second, LameDuck: 2 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))}, upstream.Options{}, backend(t, echo))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	r.stop() // c is accepted meanwhile
	if took := time.Since(began); took > 15*time.Second || took < 3*time.Second {
		t.Errorf("the drain took %v, want the lame duck's two and some of its grace period of 30 seconds", took)
	}
	if strings.Contains(log.String(), "cutting") {
		t.Errorf("it logs %s", log.String())
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	for range 3 {
		r.get("/")
	}
	r.exchange("GET /../ HTTP/1.1\r\nHost: a\r\n\r\n")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r.server.Collector(), r.routes.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += "," + l.GetValue()
			}
			got[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for key, want := range map[string]float64{
		"quayside_http_requests_total,200,web,default,web":       3,
		"quayside_http_requests_total,400,,,":                    1,
		"quayside_http_request_duration_seconds,web,default,web": 3,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v; all: %v", key, got[key], want, got)
		}
	}
}
