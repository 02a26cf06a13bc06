package upstream_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/upstream"
)

// A pod that takes connections and never speaks HTTP/2 is no better than one that takes
// none: another is quicker, and after three requests it is out of turn.
func TestMutePodIsEjected(t *testing.T) {
	mute, other := playFrames(t, podScript{silent: true}), playFrames(t, fineScript())
	e, b := newHTTP2Engine(t, upstream.Options{ConnectTimeout: time.Minute})
	set := endpoints(mute.addr, other.addr)
	b.SetEndpoints(set)
	t.Cleanup(func() { b.SetEndpoints(&balance.Set{}) })
	for i := range 20 {
		if status, body := forward(b, "POST", "body"); status != 200 {
			t.Fatalf("request %d: %d %q", i, status, body)
		}
	}
	if n := metric(t, e, "quayside_http_upstream_hedges_total"); n < 1 || mute.conns.Load() > 4 {
		t.Errorf("%v hedges, and %d connections to the mute pod, want one for each of the three times until it is out of turn", n, mute.conns.Load())
	}
	if n := other.conns.Load(); n != 1 {
		t.Errorf("%d connections to the other pod, want that which has room for all", n)
	}
	if h := healthOf(set, mute); !h.Ejected() {
		t.Error("the mute pod is in turn")
	}
}

// healthOf is that of the endpoint at which p is.
func healthOf(set *balance.Set, p *framePod) *balance.Health {
	for _, e := range set.Endpoints {
		if e.Addr.String() == p.addr {
			return e.Health
		}
	}
	return nil
}

// What does not speak HTTP/2 fails to connect, whatever it does instead, and where there
// is no other it is still asked.
func TestPodsThatDoNotSpeakHTTP2(t *testing.T) {
	for _, c := range []struct {
		name    string
		addr    string
		timeout time.Duration
		status  int
	}{
		{"mute", playFrames(t, podScript{silent: true}).addr, 50 * time.Millisecond, 504},
		{"closing", play(t, once("")).addr, time.Minute, 502},
		{"another protocol", play(t, once("220 mail\r\n\r\n")).addr, time.Minute, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, b := newHTTP2Engine(t, upstream.Options{ConnectTimeout: c.timeout})
			set := endpoints(c.addr)
			b.SetEndpoints(set)
			for range 3 {
				if set.Endpoints[0].Health.Ejected() {
					t.Error("it is out of turn before its third failure")
				}
				if status, body := forward(b, "GET", ""); status != c.status {
					t.Errorf("got %d %q, want %d", status, body, c.status)
				}
			}
			if !set.Endpoints[0].Health.Ejected() {
				t.Error("it is in turn")
			}
			if status, body := forward(b, "GET", ""); status != c.status {
				t.Errorf("then: %d %q, want %d", status, body, c.status)
			}
		})
	}
}

// A pod that is only slow to speak is back in turn once it has, and the connections that
// came too late for their requests serve others.
func TestSlowPodIsHeardOut(t *testing.T) {
	speak := make(chan struct{})
	slow, other := playFrames(t, podScript{after: speak, answer: (*podConn).fine}), playFrames(t, fineScript())
	e, b := newHTTP2Engine(t, upstream.Options{ConnectTimeout: time.Minute})
	set := endpoints(slow.addr, other.addr)
	b.SetEndpoints(set)
	ask := func() {
		if status, body := forward(b, "POST", "body"); status != 200 {
			t.Fatalf("%d %q", status, body)
		}
	}
	until(t, "it is out of turn", func() bool { ask(); return healthOf(set, slow).Ejected() })
	close(speak)
	until(t, "it is in turn", func() bool { return !healthOf(set, slow).Ejected() })
	hedges, conns := metric(t, e, "quayside_http_upstream_hedges_total"), slow.conns.Load()
	for range 10 {
		ask()
	}
	if n := metric(t, e, "quayside_http_upstream_hedges_total"); n != hedges || slow.conns.Load() != conns {
		t.Errorf("%v hedges, then %v, and %d connections to the slow pod, then %d", hedges, n, conns, slow.conns.Load())
	}
}

// All of a connection has one timeout: what TCP and TLS take is not left for HTTP/2.
func TestOneTimeoutForAllOfAConnection(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	s := httptest.NewTLSServer(nil)
	config := s.TLS.Clone()
	s.Close()
	pod := play(t, func(c net.Conn, _ *bufio.Reader) {
		time.Sleep(timeout * 9 / 10)
		io.Copy(io.Discard, tls.Server(c, config)) // shakes hands
	})
	_, b := newHTTP2Engine(t, upstream.Options{ConnectTimeout: timeout})
	b.SetTLS(&tls.Config{InsecureSkipVerify: true})
	b.SetEndpoints(endpoints(pod.addr))
	began := time.Now()
	if status, body := forward(b, "GET", ""); status != 504 {
		t.Errorf("%d %q, want 504", status, body)
	}
	if took := time.Since(began); took > timeout*17/10 {
		t.Errorf("it took %v, want %v", took, timeout)
	}
}
