package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// startGlobal runs a proxy whose ConfigMap is default/wide, with one route to a backend.
func startGlobal(t *testing.T, backend http.Handler, state func(net.Conn, http.ConnState), more ...func(*proxy.Options)) (*cluster.Files, *proxy.Proxy) {
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2 = true
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		for _, set := range more {
			set(o)
		}
	})
	s := httptest.NewUnstartedServer(backend)
	s.Config.ConnState = state
	s.Start()
	t.Cleanup(s.Close)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(s.URL, "http://")), ingress("web", "a.test", "/", "web", number), configMap("wide"))
	eventually(t, "the route is served", func() bool { code, _ := get(t, bound(p, false), "a.test", "/"); return code == 200 })
	return files, p
}

// The options about connections to endpoints act on requests from then on.
func TestUpstreamKeepalive(t *testing.T) {
	var made atomic.Int64
	files, p := startGlobal(t, echoing("web"), func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	})
	addr := bound(p, false)
	connections := func(requests int, pause time.Duration) int64 {
		get(t, addr, "a.test", "/") // there is a connection of before
		before := made.Load()
		for range requests {
			time.Sleep(pause)
			get(t, addr, "a.test", "/")
		}
		return made.Load() - before
	}
	for _, c := range []struct {
		key, value  string
		requests    int
		pause       time.Duration
		least, most int64 // new connections
	}{
		{"upstream-keepalive-connections", "320", 4, 0, 0, 0},
		{"upstream-keepalive-connections", "0", 4, 0, 4, 4},
		{"upstream-keepalive-connections", "-1", 4, 0, 0, 0},
		{"upstream-keepalive-requests", "2", 4, 0, 2, 3},
		{"upstream-keepalive-requests", "1", 4, 0, 4, 4},
		{"upstream-keepalive-requests", "0", 4, 0, 0, 0},
		{"upstream-keepalive-requests", "$uri", 4, 0, 0, 0},
		{"upstream-keepalive-timeout", "1", 1, 1100 * time.Millisecond, 1, 1},
		{"upstream-keepalive-timeout", "99999999h", 4, 0, 0, 0},
		{"upstream-keepalive-time", "1s", 1, 1100 * time.Millisecond, 1, 1},
		{"upstream-keepalive-time", "1 h", 4, 0, 0, 0},
	} {
		files.Put(configMap("wide", c.key, c.value))
		eventually(t, fmt.Sprintf("with %s %s %d requests take from %d to %d connections", c.key, c.value, c.requests, c.least, c.most), func() bool {
			n := connections(c.requests, c.pause)
			return c.least <= n && n <= c.most
		})
	}
	files.Put(configMap("wide"))
	eventually(t, "without options connections stay", func() bool { return connections(4, 0) == 0 })
}

// A client is told to come again by another connection after so many requests, in
// the words of its protocol.
func TestKeepAliveRequests(t *testing.T) {
	files, p := startGlobal(t, echoing("web"), nil)
	closes := func(nth int) bool {
		c, err := net.Dial("tcp", bound(p, false))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		tr := &http.Transport{DialContext: onceOver(c), DisableKeepAlives: false}
		defer tr.CloseIdleConnections()
		for i := 1; ; i++ {
			req, _ := http.NewRequest("GET", "http://a.test/", nil)
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.Close || i == nth {
				return resp.Close && i == nth
			}
		}
	}
	if closes(20) {
		t.Error("without a bound the connection ends")
	}
	files.Put(configMap("wide", "keep-alive-requests", "3"))
	eventually(t, "the third response ends the connection", func() bool { return closes(3) })
	leaves := func() bool {
		framer, _ := greet(t, p)
		for id := uint32(1); id < 40; id += 2 {
			framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x82, 0x87, 0x84, 0x41, 6, 'a', '.', 't', 'e', 's', 't'}, EndStream: true, EndHeaders: true})
			for {
				f, err := framer.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := f.(*http2.GoAwayFrame); ok {
					return id == 5
				}
				if f.Header().StreamID == id && f.Header().Flags.Has(http2.FlagDataEndStream) {
					break
				}
			}
		}
		return false
	}
	if !leaves() {
		t.Error("over HTTP/2 the third request does not bring GOAWAY")
	}
	files.Put(configMap("wide", "keep-alive-requests", "none"))
	eventually(t, "what is no number has no effect", func() bool { return !closes(20) })
}

// hears sends lines to the proxy over one connection and returns all that comes until
// the proxy ends it, which by default it would not within a minute.
func hears(t *testing.T, p *proxy.Proxy, lines ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", bound(p, false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	for _, line := range lines {
		io.WriteString(c, line)
	}
	said, err := io.ReadAll(c)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("%q: the connection is left open, after %q", lines, said)
	}
	return string(said)
}

// How long a client may make the proxy wait.
func TestClientTimeouts(t *testing.T) {
	files, p := startGlobal(t, echoing("web"), nil)
	const whole = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
	for _, c := range []struct{ key, sent, says, not string }{
		{"keep-alive", whole, "HTTP/1.1 200", "Connection: close"},
		{"client-header-timeout", "GET / HTTP/1.1\r\nHost:", "", "HTTP/1.1 200"},
		{"client-body-timeout", "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\nx", "HTTP/1.1 408", ""},
	} {
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			files, p := startGlobal(t, reading(), nil)
			files.Put(configMap("wide", c.key, "1"))
			eventually(t, "the ConfigMap is read", func() bool { return p.Table().Connections != nil })
			if said := hears(t, p, c.sent); !strings.Contains(said, c.says) || c.not != "" && strings.Contains(said, c.not) {
				t.Errorf("said %q, want %q and not %q", said, c.says, c.not)
			}
		})
	}
	files.Put(configMap("wide", "keep-alive", "0"))
	eventually(t, "the ConfigMap is read", func() bool { c := p.Table().Connections; return c != nil && c.Waits.Idle < 0 })
	if said := hears(t, p, whole); !strings.Contains(said, "Connection: close") {
		t.Errorf("a connection that carries one request says %q", said)
	}
	for _, key := range []string{"keep-alive", "client-header-timeout", "client-body-timeout", "proxy-protocol-header-timeout"} {
		files.Put(configMap("wide", key, "1s; x"))
		eventually(t, "what is no time is told of "+key, func() bool { return strings.Contains(fmt.Sprint(p.Table().Problems), key) })
	}
}

// reading reads the whole of each request before it answers.
func reading() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { io.Copy(io.Discard, req.Body) })
}

// Where the ConfigMap asks for PROXY headers, those who are trusted must send one, and
// what it says of the client holds.
func TestUseProxyProtocol(t *testing.T) {
	files, p := startGlobal(t, echoing("web"), nil)
	files.Put(configMap("wide", "use-proxy-protocol", "true", "proxy-real-ip-cidr", "127.0.0.0/8", "block-cidrs", "192.0.2.66",
		"proxy-protocol-header-timeout", "1", "force-ssl-redirect", "true"))
	ask := func(header string) string {
		return hears(t, p, header, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	}
	const from = "PROXY TCP4 192.0.2.55 198.51.100.1 5000 "
	eventually(t, "listeners and routes have read the ConfigMap", func() bool {
		return strings.HasPrefix(ask(from+"443\r\n"), "HTTP/1.1 200") && strings.HasPrefix(ask(from+"80\r\n"), "HTTP/1.1 308")
	})
	for header, want := range map[string]string{
		from + "80\r\n":  "HTTP/1.1 308", // TLS did not end in front of us
		from + "443\r\n": "HTTP/1.1 200",
		"PROXY TCP4 192.0.2.66 198.51.100.1 5000 443\r\n": "HTTP/1.1 403",
		from + "0443\r\n": "",
		"":                "",
	} {
		if said := ask(header); want == "" && strings.Contains(said, "HTTP/1.1 2") || !strings.HasPrefix(said, want) {
			t.Errorf("%q is answered %q, want %q", header, said, want)
		}
	}
	t.Run("proxy-protocol-header-timeout", func(t *testing.T) {
		began := time.Now()
		said := hears(t, p, "PROXY TCP4 192.0.2.") // never ends
		if took := time.Since(began); said != "" || took < 500*time.Millisecond || took > 4*time.Second {
			t.Errorf("ended after %v with %q, want a second", took, said)
		}
	})
	files.Put(configMap("wide", "use-proxy-protocol", "true"))
	eventually(t, "strangers come without, and one's header is not believed", func() bool {
		return strings.HasPrefix(ask(""), "HTTP/1.1 200") && strings.Contains(ask("PROXY TCP4 192.0.2.66 198.51.100.1 5000 443\r\n"), "HTTP/1.1 200")
	})
	if !strings.Contains(fmt.Sprint(p.Table().Problems), "use-proxy-protocol trusts nobody") {
		t.Error("that nobody is trusted is not told")
	}
	files.Put(configMap("wide"))
	eventually(t, "without the option a header is no request", func() bool { return strings.HasPrefix(ask(from+"443\r\n"), "HTTP/1.1 4") })
}

// What a PROXY header says holds for HTTP/2 of prior knowledge, too: who came by TLS that
// ended in front of us would be redirected for ever. Who has none gets no answer, whatever
// it is that it speaks.
func TestUseProxyProtocolBeforeHTTP2(t *testing.T) {
	files, p := startGlobal(t, echoing("web"), nil, func(o *proxy.Options) { o.H2C = true })
	files.Put(configMap("wide", "use-proxy-protocol", "true", "proxy-real-ip-cidr", "127.0.0.0/8", "proxy-protocol-header-timeout", "1", "force-ssl-redirect", "true"))
	const from = "PROXY TCP4 192.0.2.55 198.51.100.1 5000 "
	const request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
	eventually(t, "listeners and routes have read the ConfigMap", func() bool {
		return strings.HasPrefix(hears(t, p, from+"443\r\n", request), "HTTP/1.1 200") && strings.HasPrefix(hears(t, p, from+"80\r\n", request), "HTTP/1.1 308")
	})
	for header, want := range map[string]int{from + "80\r\n": 308, from + "443\r\n": 200} {
		if status := behind(t, p, header); status != want {
			t.Errorf("HTTP/2 behind %q is answered %d, want %d", header, status, want)
		}
	}
	for _, sent := range []string{request, from + "0443\r\n" + request, "PROXY TCP4 192.0.2."} {
		if said := hears(t, p, sent); said != "" {
			t.Errorf("%q is answered %q", sent, said)
		}
	}
}

// behind sends a request by HTTP/2 behind a PROXY header.
func behind(t *testing.T, p *proxy.Proxy, header string) (status int) {
	t.Helper()
	tr := unencryptedHTTP2(t)
	tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, bound(p, false))
		if err == nil {
			_, err = io.WriteString(c, header)
		}
		return c, err
	}
	resp, err := tr.RoundTrip(httptest.NewRequest("GET", "http://a.test/", nil))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Clients are counted by what the ConfigMap says, and who has nothing of it is not.
func TestLimitConnZoneVariable(t *testing.T) {
	files, p := startGlobal(t, echoing("web"), nil)
	limited := annotated("limited", "limited.test", map[string]string{"limit-rpm": "1", "limit-burst-multiplier": "1"})
	passes := func(key string) bool {
		status, _ := ask(t, bound(p, false), "limited.test", "/\nX-Api-Key: "+key)
		return status == 200
	}
	files.Put(configMap("wide", "limit-conn-zone-variable", "$http_x_api_key"), limited)
	eventually(t, "the host is served", func() bool { return passes("") })
	eventually(t, "one key is limited", func() bool { return !passes("ann") })
	if !passes("bob") {
		t.Error("another key is limited with it")
	}
	for range 10 {
		if !passes("") {
			t.Error("who has no key is limited")
		}
	}
	files.Put(configMap("wide", "limit-conn-zone-variable", "$binary_remote_addr"))
	eventually(t, "the address is limited", func() bool { return !passes(fmt.Sprint(time.Now().UnixNano())) })
	files.Put(configMap("wide", "limit-conn-zone-variable", "$nobody_knows"))
	eventually(t, "what means nothing is told", func() bool { return strings.Contains(fmt.Sprint(p.Table().Problems), "limit-conn-zone-variable") })
}

// Who has as many requests under way as it may is refused with the status of the
// ConfigMap; and requests have no name where that says so.
func TestLimitConnStatusCode(t *testing.T) {
	entered := make(chan struct{}, 100)
	files, p := startGlobal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "id=%d.", len(r.Header.Get("X-Request-ID")))
	}), nil)
	files.Put(configMap("wide", "limit-conn-status-code", "429", "generate-request-id", "false"), annotated("few", "few.test", map[string]string{"limit-connections": "1"}))
	routed(t, p, "few.test")
	t.Run("generate-request-id", func(t *testing.T) {
		eventually(t, "it is off", func() bool { _, said := get(t, bound(p, false), "a.test", "/"); return said == "id=0." })
	})
	c, err := net.Dial("tcp", bound(p, false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: few.test\r\n\r\n")
	<-entered
	t.Run("limit-connections", func(t *testing.T) {
		if status, said := get(t, bound(p, false), "few.test", "/"); status != 429 {
			t.Errorf("a second request is answered %d %q", status, said)
		}
	})
	files.Put(configMap("wide"))
	eventually(t, "requests have names again", func() bool { _, said := get(t, bound(p, false), "a.test", "/"); return said == "id=32." })
}

// onceOver dials c, whatever is asked for.
func onceOver(c net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return c, nil }
}

// greet begins HTTP/2 with the proxy and returns what it says of itself.
func greet(t *testing.T, p *proxy.Proxy) (*http2.Framer, map[http2.SettingID]uint32) {
	t.Helper()
	c, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: "a.test", NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, http2.ClientPreface)
	framer := http2.NewFramer(c, c)
	framer.WriteSettings()
	settings := map[http2.SettingID]uint32{}
	f, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := f.(*http2.SettingsFrame); ok {
		s.ForeachSetting(func(s http2.Setting) error { settings[s.ID] = s.Val; return nil })
	}
	return framer, settings
}

func TestHTTP2MaxConcurrentStreams(t *testing.T) {
	files, p := startGlobal(t, echoing("web"), nil)
	for _, c := range []struct {
		value string
		want  uint32
	}{{"", 128}, {"7", 7}, {"0", 128}, {"1000", 1000}, {"1001", 128}, {"-1", 128}, {"7;", 128}, {"99999999999999999999", 128}} {
		files.Put(configMap("wide", "http2-max-concurrent-streams", c.value))
		eventually(t, fmt.Sprintf("%q gives %d", c.value, c.want), func() bool {
			_, settings := greet(t, p)
			return settings[http2.SettingMaxConcurrentStreams] == c.want
		})
	}
}

func TestUseHTTP2(t *testing.T) {
	files, p := startGlobal(t, echoing("web"), nil)
	offered := func() string {
		c, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: "a.test", NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		return c.ConnectionState().NegotiatedProtocol
	}
	for _, c := range []struct{ value, want string }{{"", "h2"}, {"false", "http/1.1"}, {"true", "h2"}, {"false;", "h2"}, {"no way", "h2"}} {
		files.Put(configMap("wide", "use-http2", c.value))
		eventually(t, fmt.Sprintf("%q offers %s", c.value, c.want), func() bool { return offered() == c.want })
	}
}

// The ConfigMap slows every response down, and an annotation lets one go.
func TestLimitRateOfAll(t *testing.T) {
	var asked atomic.Int64
	files, p := startGlobal(t, flow(&asked), nil)
	files.Put(configMap("wide", "limit-rate", "16", "limit-rate-after", "1"), annotated("free", "free.test", map[string]string{"limit-rate": "0"}))
	took := func(host string) time.Duration {
		began := time.Now()
		if status, said := get(t, bound(p, false), host, "/large"); status != 200 || len(said) != 24<<10 {
			return 0
		}
		return time.Since(began)
	}
	eventually(t, "24 KiB at 16 in a second take over 0.4 s", func() bool { return took("a.test") > 400*time.Millisecond })
	eventually(t, "an annotation lets them go", func() bool { d := took("free.test"); return d > 0 && d < 300*time.Millisecond })
}

// Requests of one hash go to as many endpoints as are in a group, and no others.
func TestUpstreamHashBySubset(t *testing.T) {
	files, p := start(t, nil)
	var pods []string
	for i := range 8 {
		pods = append(pods, echo(t, fmt.Sprint("pod", i)))
	}
	files.Put(podsOf("web", pods...)...)
	files.Put(service("web", corev1.ServicePort{Port: 80}),
		annotated("three", "three.test", map[string]string{"upstream-hash-by": "$arg_user", "upstream-hash-by-subset": "true"}),
		annotated("two", "two.test", map[string]string{"upstream-hash-by": "$arg_user", "upstream-hash-by-subset": "true", "upstream-hash-by-subset-size": "2"}),
		annotated("one", "one.test", map[string]string{"upstream-hash-by": "$arg_user", "upstream-hash-by-subset": "false", "upstream-hash-by-subset-size": "2"}),
		annotated("all", "all.test", map[string]string{"upstream-hash-by-subset": "true"}),
		annotated("bad", "bad.test", map[string]string{"upstream-hash-by": "$arg_user", "upstream-hash-by-subset": "true", "upstream-hash-by-subset-size": "17 $uri"}))
	addr := bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "bad.test", "/"); return code == 200 })
	groups := map[string]bool{}
	for _, k := range []struct {
		key, host string
		want      int
	}{
		{"upstream-hash-by-subset", "three.test", 3}, {"upstream-hash-by-subset", "one.test", 1}, {"upstream-hash-by-subset", "all.test", 8},
		{"upstream-hash-by-subset-size", "two.test", 2}, {"upstream-hash-by-subset-size", "bad.test", 3},
	} {
		t.Run(k.key, func(t *testing.T) {
			for user := range 4 {
				met := map[string]bool{}
				for range 100 {
					_, said := get(t, addr, k.host, fmt.Sprint("/?user=", user))
					pod, _, _ := strings.Cut(said, " ")
					met[pod] = true
				}
				if len(met) != k.want {
					t.Errorf("%s: user %d met %d endpoints, want %d", k.host, user, len(met), k.want)
				}
				groups[fmt.Sprint(k.host, met)] = true
			}
		})
	}
	if len(groups) < 8 {
		t.Errorf("all users have the same groups: %v", groups)
	}
}

// Requests of one value of a table go to one endpoint, whoever sends them, and those for which it
// has a value of each go to all.
func TestUpstreamHashByTable(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"} })
	var pods []string
	for i := range 8 {
		pods = append(pods, echo(t, fmt.Sprint("pod", i)))
	}
	files.Put(podsOf("web", pods...)...)
	files.Put(service("web", corev1.ServicePort{Port: 80}), configMap("wide", "http-snippet", `map $arg_session $key { "" $request_id; ~^(.*)-.*$ $1; default $arg_session; }`),
		annotated("one", "one.test", map[string]string{"upstream-hash-by": "of $key"}))
	addr := bound(p, false)
	eventually(t, "the route is served", func() bool { code, _ := get(t, addr, "one.test", "/"); return code == 200 })
	met := func(path string) (n int) {
		seen := map[string]bool{}
		for i := range 60 {
			_, said := get(t, addr, "one.test", fmt.Sprintf(path, i))
			pod, _, _ := strings.Cut(said, " ")
			seen[pod] = true
		}
		return len(seen)
	}
	if a, b, none := met("/?session=a-%d"), met("/%d?session=b"), met("/?%d"); a != 1 || b != 1 || none < 5 {
		t.Errorf("two sessions meet %d and %d endpoints, and those without %d", a, b, none)
	}
}
