package upstream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// ask forwards a GET and reads the body to its end.
func ask(b *upstream.Backend, f *exchange.Forwarding) *exchange.Exchange {
	ex := &exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Host: []byte("a"), Target: []byte("/"), Forwarding: f}}
	b.Forward(ex)
	if body := ex.Response.Body; body != nil {
		if w, ok := body.(exchange.Whole); ok {
			if _, whole := w.Whole(); !whole {
				io.Copy(io.Discard, body)
			}
		}
		body.Close()
	}
	return ex
}

// faultsOf are the failures that the metrics of an Engine tell, by endpoint.
func faultsOf(t *testing.T, e *upstream.Engine) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(e.Collector())
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "quayside_http_upstream_endpoint_failures_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "endpoint" {
					faults[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return faults
}

// What the exchange is told of endpoints is what happened, and the metrics blame
// those that failed.
func TestTriesAreTold(t *testing.T) {
	const slow = 20 * time.Millisecond
	big := strings.Repeat("x", 300_000)
	busy := play(t, say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
	good := play(t, func(c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		time.Sleep(slow)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"+big[:1000])
		time.Sleep(slow)
		io.WriteString(c, big[1000:])
		http.ReadRequest(r)
	})
	e, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(busy.addr, good.addr))
	var ex *exchange.Exchange
	for range 2 { // whoever is first in turn, one of two begins with the busy one
		if ex = ask(b, &exchange.Forwarding{Next: exchange.NextError | exchange.Next503}); len(ex.Upstream.Tries) == 2 {
			break
		}
	}
	u := &ex.Upstream
	if len(u.Tries) != 2 || ex.Response.Status != 200 {
		t.Fatalf("status %d after %+v", ex.Response.Status, u.Tries)
	}
	first, last := u.Tries[0], u.Last()
	if first.Endpoint != netip.MustParseAddrPort(busy.addr) || first.Status != 503 || first.Received != 0 {
		t.Errorf("the first try is told as %+v", first)
	}
	if last.Endpoint != netip.MustParseAddrPort(good.addr) || last.Status != 200 || last.Received != 300_000 {
		t.Errorf("the last try is told as %+v", last)
	}
	if last.Header < slow || last.Took < 2*slow || last.Took <= last.Header || last.Connect >= last.Header || u.Waited < last.Took || u.Began.IsZero() {
		t.Errorf("times: %+v, waited %v since %v", last, u.Waited, u.Began)
	}
	if u.Name != "default-web-80" {
		t.Errorf("the backend is called %q", u.Name)
	}
	if f := faultsOf(t, e); f[busy.addr] < 1 || f[good.addr] != 0 {
		t.Errorf("failures by endpoint: %v", f)
	}
}

// An endpoint that breaks off in the middle is to blame, one that is refused a
// connection too, and nobody for a Service without endpoints.
func TestEndpointsAreBlamed(t *testing.T) {
	short := play(t, once("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfine"))
	closed := play(t, say(fine))
	closed.l.Close()
	e, b := newEngine(t, upstream.Options{})
	for i, addr := range []string{short.addr, closed.addr} {
		b.SetEndpoints(endpoints(addr))
		ex := ask(b, nil)
		if u := ex.Upstream; len(u.Tries) == 0 || u.Last().Status != []int{200, 0}[i] || u.Last().Failed != []int{0, 502}[i] {
			t.Errorf("%s: %+v", addr, u)
		}
		if f := faultsOf(t, e); f[addr] < 1 || len(f) != 1 {
			t.Errorf("failures by endpoint: %v", f)
		}
	}
	mute := play(t, func(_ net.Conn, r *bufio.Reader) { http.ReadRequest(r); http.ReadRequest(r) })
	b.SetEndpoints(endpoints(mute.addr))
	ex := ask(b, &exchange.Forwarding{ReadTimeout: time.Millisecond})
	if u := ex.Upstream; ex.Response.Status != 504 || len(u.Tries) == 0 || u.Last().Status != 0 || u.Last().Failed != 504 {
		t.Errorf("in vain was waited for %+v, status %d", u, ex.Response.Status)
	}
	b.SetEndpoints(endpoints())
	if ex := ask(b, nil); len(ex.Upstream.Tries) != 0 || !ex.Upstream.Began.IsZero() {
		t.Errorf("nobody was asked, and yet %+v", ex.Upstream)
	}
}
