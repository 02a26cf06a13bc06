package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// securePod is a pod that speaks TLS, and the authorities that vouch for it.
func securePod(t *testing.T, h http.HandlerFunc, change func(*httptest.Server)) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{}
	if change != nil {
		change(s)
	}
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s, pool
}

func hostOf(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "https://") }

// All that goes over plain TCP goes over TLS: several requests on a connection,
// bodies of both kinds both ways, trailers.
func TestUpstreamTLS(t *testing.T) {
	conns := map[string]bool{}
	s, pool := securePod(t, func(w http.ResponseWriter, r *http.Request) {
		conns[r.RemoteAddr] = true
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-SNI", r.TLS.ServerName)
		w.Header().Set("Trailer", "X-Sum")
		if r.Method == "POST" {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
		}
		w.Write(body)
		w.Header().Set("X-Sum", fmt.Sprint(len(body)))
	}, nil)
	_, b := newEngine(t, upstream.Options{})
	b.SetTLS(&tls.Config{RootCAs: pool, ServerName: "example.com"})
	b.SetEndpoints(endpoints(hostOf(s)))
	for _, size := range []int{0, 5, 100, 9_000, 300_000, 3 << 20} {
		for _, length := range []int64{int64(size), -1} {
			body := bytes.Repeat([]byte("x"), size)
			ex := upload(b, bytes.NewReader(body), length)
			if ex.Response.Status != 200 {
				t.Fatalf("%d bytes: %d %s", size, ex.Response.Status, ex.Response.Text)
			}
			got, err := io.ReadAll(ex.Response.Body)
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%d bytes came back of %d, %v", len(got), size, err)
			}
			if sum := ex.Response.Trailer.Header.Get("X-Sum"); string(sum) != fmt.Sprint(size) {
				t.Errorf("the trailer says %q, want %d", sum, size)
			}
			if sni := ex.Response.Header.Get("X-SNI"); string(sni) != "example.com" {
				t.Errorf("the name sent was %q", sni)
			}
			ex.Response.Body.Close()
		}
	}
	// An answer that overtakes the last write of a large body costs its connection,
	// which a busy machine may bring about once or twice among the twelve.
	if len(conns) > 3 {
		t.Errorf("%d connections were used, want one for nearly all", len(conns))
	}
}

func TestUpstreamTLSRefuses(t *testing.T) {
	ok := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }
	plain, pool := securePod(t, ok, nil)
	old, oldPool := securePod(t, ok, func(s *httptest.Server) { s.TLS.MaxVersion = tls.VersionTLS12 })
	asking, askingPool := securePod(t, ok, func(s *httptest.Server) { s.TLS.ClientAuth = tls.RequireAnyClientCert })
	mute := blackHoleTLS(t)
	for _, c := range []struct {
		name   string
		addr   string
		config *tls.Config
		status int
	}{
		{"verified", hostOf(plain), &tls.Config{RootCAs: pool, ServerName: "example.com"}, 200},
		{"not verified", hostOf(plain), &tls.Config{InsecureSkipVerify: true}, 200},
		{"another name", hostOf(plain), &tls.Config{RootCAs: pool, ServerName: "example.org"}, 502},
		{"another authority", hostOf(plain), &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"}, 502},
		{"too old", hostOf(old), &tls.Config{RootCAs: oldPool, ServerName: "example.com", MinVersion: tls.VersionTLS13}, 502},
		{"old enough", hostOf(old), &tls.Config{RootCAs: oldPool, ServerName: "example.com"}, 200},
		{"client certificate", hostOf(asking), &tls.Config{RootCAs: askingPool, ServerName: "example.com", Certificates: plain.TLS.Certificates}, 200},
		{"no client certificate", hostOf(asking), &tls.Config{RootCAs: askingPool, ServerName: "example.com"}, 502},
		{"no TLS at all", play(t, say(fine)).addr, &tls.Config{InsecureSkipVerify: true}, 502},
		{"a handshake that stalls", mute, &tls.Config{InsecureSkipVerify: true}, 504},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, b := newEngine(t, upstream.Options{ConnectTimeout: time.Second})
			b.SetTLS(c.config)
			b.SetEndpoints(endpoints(c.addr))
			status, body := forward(b, "GET", "")
			if status != c.status || strings.Contains(body, "127.0.0.1") {
				t.Errorf("got %d %q, want %d", status, body, c.status)
			}
		})
	}
}

// blackHoleTLS takes connections and never says a word.
func blackHoleTLS(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// gathering is a connection that can hold back what is written to it.
type gathering struct {
	net.Conn
	hold atomic.Bool
	held []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	if !g.hold.Load() {
		return g.Conn.Write(b)
	}
	g.held = append(g.held, b...)
	return len(b), nil
}

func (g *gathering) release() {
	g.hold.Store(false)
	g.Conn.Write(g.held)
}

type gatheringListener struct{ net.Listener }

func (l gatheringListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &gathering{Conn: c}, err
}

// A record that nobody asked for is not taken for the next answer, and a
// certificate that changes is used from the next request on.
func TestUpstreamTLSConnections(t *testing.T) {
	s, pool := securePod(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		// Both in one segment, so that TLS holds the second when the first is read.
		raw := c.(*tls.Conn).NetConn().(*gathering)
		raw.hold.Store(true)
		io.WriteString(c, fine)
		io.WriteString(c, strings.Replace(fine, "fine", "evil", 1))
		raw.release()
		go func() { io.Copy(io.Discard, c); c.Close() }()
	}, func(s *httptest.Server) { s.Listener = gatheringListener{s.Listener} })
	e, b := newEngine(t, upstream.Options{})
	b.SetTLS(&tls.Config{RootCAs: pool, ServerName: "example.com"})
	b.SetEndpoints(endpoints(hostOf(s)))
	for range 20 {
		if status, body := forward(b, "GET", ""); status != 200 || body != "fine" {
			t.Fatalf("got %d %q", status, body)
		}
	}

	good, pool := securePod(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }, nil)
	b.SetTLS(&tls.Config{RootCAs: pool, ServerName: "example.com"})
	b.SetEndpoints(endpoints(hostOf(good)))
	forward(b, "GET", "")
	before := metric(t, e, "quayside_http_upstream_connects_total")
	forward(b, "GET", "")
	if n := metric(t, e, "quayside_http_upstream_connects_total"); n != before {
		t.Errorf("the connection was not used again: %v connects, then %v", before, n)
	}
	b.SetTLS(&tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"})
	if status, _ := forward(b, "GET", ""); status != 502 {
		t.Errorf("with authorities that do not vouch for the pod: %d", status)
	}
}

// An upgraded connection goes through TLS as well.
func TestTunnelOverTLS(t *testing.T) {
	s, pool := securePod(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(101)
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.Copy(c, rw)
	}, nil)
	_, b := newEngine(t, upstream.Options{})
	b.SetTLS(&tls.Config{RootCAs: pool, ServerName: "example.com"})
	b.SetEndpoints(endpoints(hostOf(s)))
	ex := &exchange.Exchange{}
	request(ex, "GET", "/")
	ex.Request.Upgrade = []byte("echo")
	b.Forward(ex)
	if ex.Response.Status != 101 || ex.Response.Upgraded == nil {
		t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
	}
	client, far := net.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); ex.Response.Upgraded(far) }()
	for _, word := range []string{"hello", strings.Repeat("x", 50_000)} {
		go io.WriteString(client, word)
		got := make([]byte, len(word))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != word {
			t.Fatalf("%d bytes came back wrong: %v", len(word), err)
		}
	}
	client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		t.Error("the tunnel does not end")
	}
}

// The route says how long a pod may take to read a head, with TLS and without, and not
// the engine.
func TestSendTimeoutOfARoute(t *testing.T) {
	secure, _ := securePod(t, nil, nil)
	for _, c := range []struct {
		name        string
		pod, client *tls.Config
	}{
		{"plain", nil, nil},
		{"TLS", secure.TLS, &tls.Config{InsecureSkipVerify: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, b := newEngine(t, upstream.Options{SendTimeout: 20 * time.Second, ReadTimeout: 20 * time.Second})
			b.SetTLS(c.client)
			over := make(chan struct{})
			pod := play(t, func(nc net.Conn, _ *bufio.Reader) { // reads nothing
				if c.pod != nil {
					tls.Server(nc, c.pod).Handshake()
				}
				<-over
			})
			t.Cleanup(func() { close(over) })
			b.SetEndpoints(endpoints(pod.addr))
			ex := &exchange.Exchange{}
			request(ex, "POST", "/")
			ex.Request.Header.AddBorrowed([]byte("X-Large"), bytes.Repeat([]byte("x"), 16<<20)) // more than sockets take
			ex.Request.Body, ex.Request.Length = inMemory("body"), 4
			ex.Request.Forwarding = &exchange.Forwarding{SendTimeout: 100 * time.Millisecond}
			start := time.Now()
			b.Forward(ex)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			if ex.Response.Status != 504 || !strings.Contains(string(ex.Response.Text), "did not read the request in time") {
				t.Errorf("got %d %q", ex.Response.Status, ex.Response.Text)
			}
		})
	}
}
