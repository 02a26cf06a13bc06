package serve_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// A chunked upload that ends where more is due is half an upload: the backend
// must not take it for a whole one (RFC 9112 section 8).
func TestUploadCutBetweenChunks(t *testing.T) {
	read := make(chan error, 1)
	h := func(w http.ResponseWriter, req *http.Request) {
		_, err := io.Copy(io.Discard, req.Body)
		read <- err
	}
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, h))
	dials := map[string]func() net.Conn{
		"plain": func() net.Conn {
			c, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		"TLS": r.dialTLS,
	}
	for name, dial := range dials {
		for _, c := range []struct {
			body  string
			whole bool
		}{
			{"3\r\nabc\r\n", false},
			{"3\r\nabc\r\n0\r\n", false},
			{"3\r\nabc\r\n0\r\nX-Sum: 1\r\n", false},
			{"3\r\nabc", false},
			{"", false},
			{"3\r\nabc\r\n0\r\n\r\n", true},
		} {
			conn := dial()
			conn.SetDeadline(time.Now().Add(30 * time.Second))
			io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+c.body)
			conn.(interface{ CloseWrite() error }).CloseWrite()
			answer, _ := io.ReadAll(conn)
			conn.Close()
			if err := <-read; (err == nil) != c.whole {
				t.Errorf("%s, %q: the backend read it with error %v", name, c.body, err)
			}
			if got := strings.HasPrefix(string(answer), "HTTP/1.1 200"); got != c.whole {
				t.Errorf("%s, %q: answered %q", name, c.body, answer)
			}
		}
	}
}

// requests returns how many requests without a route had a status.
func (r *rig) requests(code string) float64 {
	r.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r.routes.Collector())
	families, err := registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "quayside_http_requests_total" && m.GetLabel()[0].GetValue() == code && m.GetLabel()[2].GetValue() == "" {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A client that has sent a head and then nothing is told, and counted, wherever in
// its body it stopped.
func TestStalledBodyIsTold(t *testing.T) {
	for name, body := range map[string]string{"at once": "", "within what is prefetched": "abc"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, serve.Options{Timeout: 100 * time.Millisecond}, upstream.Options{}, backend(t, echo))
			got := r.exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + body)
			if !strings.HasPrefix(got, "HTTP/1.1 408 ") {
				t.Errorf("answered %q", got)
			}
			if n := r.requests("408"); n != 1 {
				t.Errorf("%v requests are counted as 408, want 1", n)
			}
		})
	}
}

// Who speaks HTTP to the TLS port learns what is wrong.
func TestPlainHTTPOnTheTLSPort(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	secure := r.dialTLS()
	defer secure.Close()
	c, err := net.Dial("tcp", secure.RemoteAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 400 || !resp.Close || !strings.Contains(string(text), "https") {
		t.Errorf("answered %d %q, close %v", resp.StatusCode, text, resp.Close)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("then %v", err)
	}
	if n := r.requests("400"); n != 1 {
		t.Errorf("%v requests are counted as 400, want 1", n)
	}
	// What is neither is closed without words.
	c, err = net.Dial("tcp", secure.RemoteAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "\x00\x01\x02\x03\x04\x05\x06")
	if got, _ := io.ReadAll(c); strings.Contains(string(got), "HTTP") {
		t.Errorf("answered %q", got)
	}
	if err := secure.(*tls.Conn).Handshake(); err != nil {
		t.Error(err)
	}
}
