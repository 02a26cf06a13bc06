//go:build !portable

package serve_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// metric returns the value of a metric of the server that has no labels.
func (r *rig) metric(name string) float64 {
	r.t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(r.server.Collector())
	families, err := reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	r.t.Fatalf("there is no %s", name)
	return 0
}

// holding answers /wait once release is closed, and says that it was asked.
func holding(t *testing.T) (addr string, asked chan struct{}, release func()) {
	asked = make(chan struct{}, 100)
	held := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/wait" {
			asked <- struct{}{}
			<-held
		}
		io.WriteString(w, "hello")
	}))
	t.Cleanup(s.Close)
	var once atomic.Bool
	release = func() {
		if once.CompareAndSwap(false, true) {
			close(held)
		}
	}
	t.Cleanup(release)
	return s.Listener.Addr().String(), asked, release
}

// With as many connections as there may be, those that rest make room for new ones, each
// of which is answered; and their clients find them closed.
func TestIdleMakeRoom(t *testing.T) {
	const most = 8
	r := newRig(t, serve.Options{RestAfter: restAfter}, upstream.Options{}, hello(t))
	r.server.SetLimits(serve.Limits{Connections: most})
	var old []net.Conn
	for range most - 1 {
		c := r.dial()
		defer c.Close()
		ask(t, c, bufio.NewReader(c))
		old = append(old, c)
	}
	r.untilResting(most - 1)
	for range most - 1 {
		c := r.dial()
		defer c.Close()
		ask(t, c, bufio.NewReader(c))
	}
	if n := r.server.Connections(); n > most {
		t.Errorf("%d connections, want %d at most", n, most)
	}
	if n := r.metric("quayside_http_connections_refused_total"); n != 0 {
		t.Errorf("%v clients were turned away, though others were idle", n)
	}
	if n := r.metric("quayside_http_connections_spared_total"); n != most-1 {
		t.Errorf("%v connections were ended, want %d", n, most-1)
	}
	for _, c := range old {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("one that had to go ends with %v", err)
		}
	}
}

// Requests under way are not ended for anybody: who comes when there is nothing else is
// turned away, and has a place again when they are over.
func TestBusyStay(t *testing.T) {
	const most = 4
	addr, asked, release := holding(t)
	r := newRig(t, serve.Options{RestAfter: restAfter}, upstream.Options{}, addr)
	r.server.SetLimits(serve.Limits{Connections: most})
	var held []net.Conn
	for range most {
		c := r.dial()
		defer c.Close()
		io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		<-asked
		held = append(held, c)
	}
	for range 3 {
		c := r.dial()
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := c.Read(make([]byte, 1)); n > 0 || isTimeout(err) {
			t.Fatalf("one too many is answered %d bytes, %v", n, err)
		}
	}
	if n := r.metric("quayside_http_connections_refused_total"); n != 3 {
		t.Errorf("%v clients were turned away, want 3", n)
	}
	release()
	for _, c := range held {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("a request that was under way: %v", err)
		}
	}
	r.untilConnections(0)
	c := r.dial()
	defer c.Close()
	ask(t, c, bufio.NewReader(c))
}

// Who says nothing does not keep others out for long, and nobody has to go while there
// is room.
func TestSilentMakeRoom(t *testing.T) {
	const most, look = 4, 300 * time.Millisecond // which is time enough to ask something
	r := newRig(t, serve.Options{RestAfter: look}, upstream.Options{}, hello(t))
	open := func() net.Conn { // not accepted before it has said something
		c := r.dial()
		io.WriteString(c, "GET / HTTP/1.1\r\n")
		return c
	}
	first := open()
	defer first.Close()
	r.untilConnections(1)
	time.Sleep(6 * look)
	if n := r.server.Connections(); n != 1 {
		t.Fatalf("%d connections, want 1: there is room", n)
	}
	r.server.SetLimits(serve.Limits{Connections: most})
	for range most - 1 {
		defer open().Close()
	}
	r.untilConnections(most)
	r.untilConnections(most - 2) // one at least has to be free
	c := r.dial()
	defer c.Close()
	ask(t, c, bufio.NewReader(c))
}

// untilConnections waits until there are n connections.
func (r *rig) untilConnections(n int) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); r.server.Connections() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d connections, want %d", r.server.Connections(), n)
		}
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}
