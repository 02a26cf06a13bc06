package asker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"quayside.io/proxy/filter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running returns an Asker that ends with the test.
func running(t *testing.T, o Options) *Asker {
	a := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return a
}

func serving(t *testing.T, f http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

func TestAsk(t *testing.T) {
	s := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		if agent := r.Header["User-Agent"]; len(agent) > 0 {
			t.Errorf("User-Agent %q", agent)
		}
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		io.WriteString(w, r.Method+r.RequestURI+r.Host+r.Header.Get("X-A"))
	})
	a := running(t, Options{AllowLoopback: true})
	got, err := a.Ask(&filter.Question{Method: "GET", URL: s.URL + "/a%2Fb?c", Host: "other", Header: []filter.Header{{Name: "X-A", Value: "b"}}})
	if err != nil || got.Status != 200 || len(got.Header) < 2 {
		t.Errorf("%+v %v", got, err)
	}
	if got, err = a.Ask(&filter.Question{Method: "GET", URL: s.URL + "/elsewhere"}); err != nil || got.Status != 302 {
		t.Errorf("a redirect: %+v %v", got, err)
	}
	for _, wrong := range []filter.Question{{Method: "G T", URL: s.URL}, {Method: "GET", URL: "http://a b/"}, {Method: "GET", URL: "http://h:99999/"},
		{Method: "GET", URL: s.URL, Header: []filter.Header{{Name: "X", Value: "a\r\nb"}}}} {
		if got, err := a.Ask(&wrong); err == nil {
			t.Errorf("%+v: %+v", wrong, got)
		}
	}
}

// TestServicesAreAskedAtTheirEndpoints: whatever DNS says of them, and over TLS
// without a certificate that could be verified; others must have one.
func TestServicesAreAskedAtTheirEndpoints(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	defer s.Close()
	at := netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "https://"))
	a := running(t, Options{AllowLoopback: true, Service: func(host string, port uint16) ([]netip.AddrPort, bool, error) {
		switch {
		case host == "auth.shop.svc" && port == 443:
			return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1"), at}, true, nil
		case host == "empty.shop.svc":
			return nil, true, errors.New("nobody is there")
		}
		return nil, false, nil
	}})
	for range 8 { // the order is random, and one of the endpoints is dead
		if got, err := a.Ask(&filter.Question{Method: "GET", URL: "https://auth.shop.svc/"}); err != nil || got.Status != 204 {
			t.Errorf("%+v %v", got, err)
		}
	}
	if _, err := a.Ask(&filter.Question{Method: "GET", URL: "http://empty.shop.svc/"}); err == nil || !strings.Contains(err.Error(), "nobody is there") {
		t.Error(err)
	}
	if got, err := a.Ask(&filter.Question{Method: "GET", URL: s.URL}); err == nil {
		t.Errorf("a certificate that nobody vouches for: %+v", got)
	}
}

func TestAddressesThatAreNotAsked(t *testing.T) {
	a, tolerant := New(Options{}), New(Options{AllowLoopback: true})
	for addr, want := range map[string]bool{
		"192.0.2.1": true, "10.96.0.1": true, "2001:db8::1": true, "fd00::1": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fe80::1%eth0": false, "224.0.0.1": false, "ff02::1": false,
		"fd00:ec2::254": false, "100.100.100.200": false,
	} {
		ip := netip.MustParseAddr(addr)
		if a.allowed(ip) != want {
			t.Errorf("%s: %v", addr, !want)
		}
		if tolerant.allowed(ip) != (want || ip.Unmap().IsLoopback()) {
			t.Errorf("%s, with loopback: %v", addr, tolerant.allowed(ip))
		}
	}
	s := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a loopback address was asked") })
	strict := running(t, Options{})
	for _, url := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), strings.Replace(s.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		if _, err := strict.Ask(&filter.Question{Method: "GET", URL: url}); !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestAskOnceMore: a service may close a connection that it has kept just as the next
// question comes. Then that is asked on another, whatever its method. Copies are not:
// what is done with them is done twice.
func TestAskOnceMore(t *testing.T) {
	var asked atomic.Int32
	s := serving(t, func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.Contains(name, "Idempotency") {
				t.Errorf("%s is sent", name)
			}
		}
		if asked.Add(1)%2 == 0 {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
	})
	for _, method := range []string{"GET", "POST"} {
		a := running(t, Options{AllowLoopback: true, MaxConns: 8})
		asked.Store(0)
		for range 2 { // the second on the connection of the first
			if got, err := a.Ask(&filter.Question{Method: method, URL: s.URL}); err != nil || got.Status != 200 {
				t.Errorf("%s: %+v %v", method, got, err)
			}
		}
		if n := asked.Load(); n != 3 {
			t.Errorf("%s: asked %d times, want 3", method, n)
		}
		a.Send(&filter.Question{Method: "POST", URL: s.URL}) // on what the third has left
		for a.stats.failed.Load()+a.stats.arrived.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if n := asked.Load(); n != 4 || a.stats.failed.Load() != 1 {
			t.Errorf("%s: asked %d times with the copy, want 4", method, n)
		}
	}
}

// TestAnAnswerThatNeverEnds: a question ends within its time all the same.
func TestAnAnswerThatNeverEnds(t *testing.T) {
	s := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	a := running(t, Options{AllowLoopback: true, Timeout: 50 * time.Millisecond})
	if got, err := a.Ask(&filter.Question{Method: "GET", URL: s.URL}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v %v", got, err)
	}
}

// TestSend: copies do not wait, are bounded, and are counted.
func TestSend(t *testing.T) {
	open, came := make(chan struct{}), make(chan string, 8)
	s := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- string(body)
		<-open
	})
	a := running(t, Options{AllowLoopback: true, MaxCopies: 2})
	q := &filter.Question{Method: "POST", URL: s.URL, Body: []byte("copy")}
	a.Send(q)
	a.Send(q)
	if got := <-came + <-came; got != "copycopy" {
		t.Error(got)
	}
	a.Send(q) // one too many
	close(open)
	for a.stats.arrived.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	got := counted(t, a)
	for result, want := range map[string]float64{"arrived": 2, "dropped": 1, "failed": 0} {
		if got[result] != want {
			t.Errorf("%s: %v, want %v", result, got[result], want)
		}
	}
}

// counted returns the copies that the metrics tell of, by result.
func counted(t *testing.T, a *Asker) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(a.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "quayside_mirror_requests_total" {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return got
}
