package proxy_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
	"quayside.io/proxy/route"
)

// pages is a log that many write to.
type pages struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *pages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Strangers are told no name of a Service or an annotation, unless that is wanted;
// the log has them, and not once for every request.
func TestTerseErrorsNameNothing(t *testing.T) {
	for _, terse := range []bool{true, false} {
		log := &pages{}
		files, p := start(t, func(o *proxy.Options) {
			o.TerseErrors, o.Log = terse, slog.New(slog.NewTextHandler(log, nil))
		})
		closed := ingress("closed", "closed.example", "/", "cellar", number)
		closed.Annotations = map[string]string{route.OwnPrefix + "auth-type": "basic", route.OwnPrefix + "auth-secret": "keyring"}
		files.Put(
			service("cellar", corev1.ServicePort{Port: 80}), closed,
			ingress("empty", "empty.example", "/", "cellar", number),
			ingress("missing", "missing.example", "/", "attic", number),
			service("refusing", corev1.ServicePort{Port: 80}), slice("refusing", "", "127.0.0.1:1"),
			ingress("refusing", "refusing.example", "/", "refusing", number),
		)
		addr := bound(p, false)
		for host, of := range map[string]struct {
			code int
			name string // in a full body, and in the log of a terse proxy
		}{
			"closed.example":   {503, "keyring"},
			"empty.example":    {503, "default/cellar"},
			"missing.example":  {503, "default/attic"},
			"refusing.example": {502, "default/refusing"},
		} {
			var body string
			eventually(t, "the route to "+host+" is there", func() bool {
				code := 0
				code, body = get(t, addr, host, "/")
				return code == of.code
			})
			if strings.Contains(body, of.name) == terse {
				t.Errorf("terse %v: %s answers %q", terse, host, body)
			}
			for _, word := range []string{"default/", "annotation", "Secret", "auth-"} {
				if terse && strings.Contains(body, word) {
					t.Errorf("%s tells %q: %q", host, word, body)
				}
			}
			if terse && !strings.Contains(log.String(), of.name) {
				t.Errorf("%s: the log does not have %q:\n%s", host, of.name, log)
			}
			before := log.String()
			for range 20 {
				get(t, addr, host, "/")
			}
			if more := strings.Count(strings.TrimPrefix(log.String(), before), "\n"); terse && more > 2 {
				t.Errorf("%s: 20 more requests are %d more lines in the log", host, more)
			}
		}
	}
}

// A client that hangs up, or breaks its body off, is no fault of a Service: a terse
// proxy's log has no line of it that an operator sees, but one of a Service that loses
// the request.
func TestTerseLogLeavesClientsOut(t *testing.T) {
	t.Parallel()
	for _, terse := range []bool{true, false} {
		log := &pages{}
		files, p := start(t, func(o *proxy.Options) {
			o.TerseErrors, o.Log = terse, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		asked := make(chan struct{}, 1)
		pod := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/lost" {
				panic(http.ErrAbortHandler)
			}
			asked <- struct{}{}
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}))
		t.Cleanup(pod.Close)
		files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(pod.URL, "http://")), ingress("web", "a.example", "/", "web", number))
		addr := bound(p, false)
		eventually(t, "the route is there", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 1 })
		of := func(level, reason string) (n int) {
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "could not be forwarded") && strings.Contains(line, "level="+level) && strings.Contains(line, "error="+reason) {
					n++
				}
			}
			return n
		}
		for reason, request := range map[string]string{
			"client_gone":   "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
			"\"client_body": "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 100_000),
		} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(c, request)
			<-asked
			c.Close()
			eventually(t, "the log has "+reason, func() bool { return of("DEBUG", reason)+of("WARN", reason) > 0 })
			if n := of("WARN", reason); n > 0 {
				t.Errorf("terse %v: %d warnings of %s", terse, n, reason)
			}
		}
		if code, _ := ask(t, addr, "a.example", "/lost"); code != 502 {
			t.Errorf("a lost request: %d", code)
		}
		want := 0
		if terse {
			want = 1
		}
		if n := of("WARN", "\"connection_lost"); n != want {
			t.Errorf("terse %v: %d warnings of a Service that loses requests, want %d:\n%s", terse, n, want, log)
		}
	}
}
