package upstream_test

import (
	"testing"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
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

// caller is a client that says when it hangs up.
type caller struct {
	leaver
	wake chan chan<- struct{}
}

func (c *caller) WakeWhenGone(ch chan<- struct{}) {
	if ch != nil {
		c.wake <- ch
	}
}

// Who waits for a connection of HTTP/2 that another makes does so no longer than its own
// route and its client do.
func TestFollowersOfAConnection(t *testing.T) {
	e, b := newHTTP2Engine(t, upstream.Options{ConnectTimeout: 20 * time.Second})
	b.SetEndpoints(endpoints(blackhole.Address(t)))
	led := make(chan int, 1)
	go func() { status, _ := forward(b, "GET", ""); led <- status }()
	for metric(t, e, "quayside_http_upstream_connects_total") == 0 {
		time.Sleep(time.Millisecond)
	}
	impatient := begin(b, nil, &exchange.Forwarding{ConnectTimeout: 50 * time.Millisecond})
	c := &caller{wake: make(chan chan<- struct{}, 1)}
	left := begin(b, c, nil)
	select {
	case wake := <-c.wake:
		c.gone.Store(true)
		wake <- struct{}{}
	case <-time.After(10 * time.Second):
		t.Error("nobody listens to the client")
	}
	for what, want := range map[<-chan *exchange.Exchange]int{impatient: 504, left: exchange.StatusClientGone} {
		select {
		case ex := <-what:
			if ex.Response.Status != want {
				t.Errorf("got %d %s, want %d", ex.Response.Status, ex.Response.Text, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("who is to get %d waits for another's patience", want)
		}
	}
	if n := metric(t, e, "quayside_http_upstream_connects_total"); n != 1 {
		t.Errorf("%v connects were tried, want that of the first", n)
	}
	b.SetEndpoints(&balance.Set{Why: "none"})
	if status := <-led; status != 503 {
		t.Errorf("the first got %d when the pod left", status)
	}
}

// begin sends a request of a route with these rules, and returns where it comes back.
func begin(b *upstream.Backend, peer exchange.Peer, rules *exchange.Forwarding) <-chan *exchange.Exchange {
	done := make(chan *exchange.Exchange, 1)
	go func() {
		ex := &exchange.Exchange{}
		request(ex, "GET", "/")
		ex.Request.Peer, ex.Request.Forwarding = peer, rules
		b.Forward(ex)
		done <- ex
	}()
	return done
}

// Who waits for a connection that a request of a less patient route makes goes on when that
// one gives up, as long as its own route allows.
func TestFollowersAreMorePatientThanWhoLeads(t *testing.T) {
	silent, hole := playFrames(t, podScript{silent: true}, fineScript()).addr, blackhole.Address(t)
	for _, c := range []struct {
		name    string
		addr    string
		timeout time.Duration // of the follower
		status  int
	}{
		{"the next connection is made", silent, 20 * time.Second, 200},
		{"none is made", hole, 2 * time.Second, 504},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, b := newHTTP2Engine(t, upstream.Options{})
			b.SetEndpoints(endpoints(c.addr))
			led := begin(b, nil, &exchange.Forwarding{ConnectTimeout: time.Second, Next: exchange.NextOff})
			for metric(t, e, "quayside_http_upstream_connects_total") == 0 {
				time.Sleep(time.Millisecond)
			}
			began, peer := time.Now(), &caller{wake: make(chan chan<- struct{}, 4)}
			followed := begin(b, peer, &exchange.Forwarding{ConnectTimeout: c.timeout})
			<-peer.wake // it waits
			if ex := <-led; ex.Response.Status != 504 {
				t.Errorf("who led got %d %s, want 504", ex.Response.Status, ex.Response.Text)
			}
			ex := <-followed
			if ex.Response.Status != c.status {
				t.Errorf("who followed got %d %s, want %d", ex.Response.Status, ex.Response.Text, c.status)
			}
			if took := time.Since(began); c.status == 504 && took < c.timeout {
				t.Errorf("it gave up after %s, its route allows %s", took, c.timeout)
			}
			if n := metric(t, e, "quayside_http_upstream_connects_total"); n != 2 {
				t.Errorf("%v connects were tried, want 2", n)
			}
			if ex.Response.Body != nil {
				ex.Response.Body.Close()
			}
		})
	}
}
