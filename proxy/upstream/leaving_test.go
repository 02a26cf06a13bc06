package upstream_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// leaver is a client that hangs up.
type leaver struct{ gone atomic.Bool }

func (l *leaver) Gone() bool { return l.gone.Load() }

func TestClientGone(t *testing.T) {
	left := make(chan struct{})
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		io.Copy(io.Discard, r)
		close(left)
	})
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	ex := &exchange.Exchange{}
	request(ex, "GET", "/")
	client := &leaver{}
	client.gone.Store(true)
	ex.Request.Peer = client
	b.Forward(ex)
	if ex.Response.Status != 499 {
		t.Errorf("status %d, want 499", ex.Response.Status)
	}
	select {
	case <-left:
	case <-time.After(30 * time.Second):
		t.Error("the upstream was left waiting")
	}
}

func TestRemovedEndpointFinishesItsRequests(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{}, 1)
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		asked <- struct{}{}
		<-release
		io.WriteString(c, fine)
		io.Copy(io.Discard, r)
	})
	e, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	done := make(chan string, 1)
	go func() {
		status, body := forward(b, "GET", "")
		done <- fmt.Sprint(status, body)
	}()
	<-asked
	b.SetEndpoints(endpoints())
	close(release)
	if got := <-done; got != "200fine" {
		t.Errorf("got %s", got)
	}
	if n := metric(t, e, "quayside_http_upstream_connections"); n != 0 {
		t.Errorf("%v connections are left", n)
	}
}

// Who leaves and is back in a moment finds its connection; who stays away loses it.
func TestConnectionsOutliveAnAbsence(t *testing.T) {
	ended := make(chan struct{}, 1)
	pod := play(t, func(c net.Conn, r *bufio.Reader) { say(fine)(c, r); ended <- struct{}{} })
	e, b := newEngine(t, upstream.Options{})
	for {
		began, before := time.Now(), pod.conns.Load()
		b.SetEndpoints(endpoints(pod.addr))
		if status, body := forward(b, "GET", ""); status != 200 {
			t.Fatalf("%d %q", status, body)
		}
		b.SetEndpoints(endpoints())
		b.SetEndpoints(endpoints(pod.addr))
		if n := metric(t, e, "quayside_http_upstream_connections"); n != 1 && time.Since(began) < time.Second {
			t.Errorf("%v connections to who is back, want 1", n)
		}
		if status, body := forward(b, "GET", ""); status != 200 {
			t.Fatalf("%d %q", status, body)
		}
		b.SetEndpoints(endpoints())
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("the connection to who has left stays open")
		}
		if pod.conns.Load() == before+1 {
			return
		}
		t.Log("on this machine it was away for too long; once more")
	}
}

// A request may have met the table before the one that forgets its backend. It
// is answered all the same, and leaves no connection behind.
func TestForgottenBackendAnswersTheLate(t *testing.T) {
	ended := make(chan struct{}, 2)
	server := play(t, func(c net.Conn, r *bufio.Reader) {
		say(fine)(c, r)
		ended <- struct{}{}
	})
	e, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(server.addr))
	for _, when := range []string{"before", "after"} {
		if status, body := forward(b, "GET", ""); status != 200 {
			t.Errorf("a request %s its backend was forgotten got %d %s", when, status, body)
		}
		e.Retain(func(route.Backend) bool { return false })
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatalf("the connection of the request %s stays open", when)
		}
	}
}
