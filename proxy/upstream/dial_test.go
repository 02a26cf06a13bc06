package upstream_test

import (
	"testing"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/upstream"
	"quayside.io/test/blackhole"
)

// A pod that leaves while a request connects to it is given up at once.
func TestEndpointLeavesWhileConnecting(t *testing.T) {
	other := play(t, say(fine))
	for _, c := range []struct {
		name   string
		then   *balance.Set
		status int
		body   string
	}{
		{"another takes its place", endpoints(other.addr), 200, "fine"},
		{"none is left", &balance.Set{Why: "Service default/web has no endpoint"}, 503, "503 Service Unavailable: Service default/web has no endpoint\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, b := newEngine(t, upstream.Options{ConnectTimeout: 20 * time.Second})
			b.SetEndpoints(endpoints(blackhole.Address(t)))
			type answer struct {
				status int
				body   string
			}
			answered := make(chan answer, 1)
			go func() {
				status, body := forward(b, "POST", "body")
				answered <- answer{status, body}
			}()
			for metric(t, e, "quayside_http_upstream_connects_total") == 0 {
				time.Sleep(time.Millisecond)
			}
			b.SetEndpoints(c.then)
			select {
			case got := <-answered:
				if got != (answer{c.status, c.body}) {
					t.Errorf("got %v", got)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it still waits for the pod that left")
			}
		})
	}
}

// A pod that does not take a connection delays a request by the hedge, not by
// the timeout, and is out of turn after three requests.
func TestConnectingHedges(t *testing.T) {
	hole, other := blackhole.Address(t), play(t, say(fine))
	e, b := newEngine(t, upstream.Options{ConnectTimeout: 20 * time.Second})
	b.SetEndpoints(endpoints(hole, other.addr))
	start := time.Now()
	for i := range 20 {
		if status, body := forward(b, "POST", "body"); status != 200 {
			t.Fatalf("request %d: %d %q", i, status, body)
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("20 requests took %s", took)
	}
	if n := metric(t, e, "quayside_http_upstream_hedges_total"); n < 1 || n > 4 {
		t.Errorf("%v hedges, want one for each of the three times until the pod is out of turn", n)
	}
}
