package upstream

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/test/blackhole"
)

// slowTLS takes connections, and shakes hands when meet lets it.
func slowTLS(t *testing.T, meet func()) netip.AddrPort {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	config := s.TLS.Clone()
	s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				meet()
				tls.Server(c, config).Handshake()
			})
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return netip.MustParseAddrPort(l.Addr().String())
}

// backendOver is one over TLS with two endpoints, in this order.
func backendOver(t *testing.T, policy balance.Policy, addrs ...netip.AddrPort) *Backend {
	b := New(Options{}).Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}})
	b.SetTLS(&tls.Config{InsecureSkipVerify: true})
	set := &balance.Set{}
	for _, a := range addrs {
		set.Endpoints = append(set.Endpoints, balance.Endpoint{Addr: a, Health: &balance.Health{}})
	}
	b.SetEndpoints(set.Arrange(policy, nil, balance.CookieKey{}))
	t.Cleanup(func() { b.SetEndpoints(&balance.Set{}) })
	return b
}

// A hedge that is broken off because the first dial was only slow says nothing about
// its pod; one that had its time does.
func TestWhoLosesARace(t *testing.T) {
	never := make(chan struct{})
	slow := slowTLS(t, func() { time.Sleep(hedgeAfter + hedgeAfter/10) })
	mute := slowTLS(t, func() { <-never })
	t.Cleanup(func() { close(never) }) // before those of the listeners
	b := backendOver(t, balance.Policy{}, slow, mute)
	now := b.state.Load()
	race3 := func(first int) (took time.Duration) {
		began := time.Now()
		var racing sync.WaitGroup
		for range 3 { // as many failures in a row eject
			racing.Go(func() {
				r := &race{backend: b, timeout: 20 * time.Second, targets: now, tried: []int{first}}
				r.ended.L = &r.mu
				at, c, err := r.run(first)
				if err != nil || at != 0 {
					t.Errorf("endpoint %d won, %v", at, err)
					return
				}
				c.endpoint.discard(c)
				r.mu.Lock()
				defer r.mu.Unlock()
				for r.running > 0 { // what they say of their pods comes before
					r.ended.Wait()
				}
			})
		}
		racing.Wait()
		return time.Since(began)
	}
	if took := race3(0); took < 2*hedgeAfter && now.set.Endpoints[1].Health.Ejected() { // on a busy machine the mute one has its time
		t.Errorf("a pod is out of turn that was asked too late to win, in races of %v", took)
	}
	race3(1)
	if !now.set.Endpoints[1].Health.Ejected() {
		t.Error("a pod that does not shake hands is in turn")
	}
}

// A pod whose handshakes are slow has lost races, but has not failed: what it makes in the
// end serves the next requests.
func TestSlowHandshakesAreHeardOut(t *testing.T) {
	const many = 3 // as many failures in a row eject
	shaking := make(chan struct{})
	slow, quick := slowTLS(t, func() { <-shaking }), slowTLS(t, func() {})
	b := backendOver(t, balance.Policy{}, slow, quick)
	now := b.state.Load()
	var racing sync.WaitGroup
	for range many {
		racing.Go(func() {
			r := &race{backend: b, timeout: time.Minute, targets: now, tried: []int{0}}
			r.ended.L = &r.mu
			at, c, err := r.run(0)
			if err != nil || at != 1 {
				t.Errorf("endpoint %d won, %v", at, err)
				return
			}
			c.endpoint.discard(c)
		})
	}
	racing.Wait()
	close(shaking)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		active, idle := now.endpoints[0].counts()
		out := now.set.Endpoints[0].Health.Ejected()
		if !out && active == 0 && idle == many {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("out of turn: %v; %d connections are in use and %d idle, want 0 and %d", out, active, idle, many)
		}
	}
}

// A request that a hedge takes to another endpoint counts there from the hedge on, so
// that no other takes its place meanwhile.
func TestHedgesCount(t *testing.T) {
	const hedged = 1
	made, taken := make(chan *Backend, 1), make(chan bool, 1)
	pod := slowTLS(t, func() {
		b := <-made
		taken <- b.picker.Begin(b.state.Load().set, hedged)
	})
	b := backendOver(t, balance.Policy{MaxRequests: 1}, netip.MustParseAddrPort(blackhole.Address(t)), pod)
	made <- b
	set := b.state.Load().set
	tr := b.engine.acquire(b, &exchange.Exchange{})
	tr.targets = b.state.Load()
	if !b.picker.Begin(set, 0) {
		t.Fatal("the first endpoint is full")
	}
	tr.counted = set.Endpoints[0].Health
	c, err := tr.dial()
	if err != nil || tr.at != hedged {
		t.Fatalf("endpoint %d won, %v", tr.at, err)
	}
	if <-taken {
		t.Error("another request took the only place at the endpoint that was being connected to")
	}
	if tr.counted != set.Endpoints[hedged].Health {
		t.Error("the request does not count where it goes")
	}
	tr.conn = c
	tr.release()
	for i := range 2 {
		if !b.picker.Begin(set, i) {
			t.Errorf("endpoint %d is full when all is over", i)
		}
	}
}

// A connection that is made when the race is over serves the next request.
func TestLoserOfARaceIsKept(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := New(Options{})
	b := e.Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}})
	addr := netip.MustParseAddrPort(l.Addr().String())
	b.SetEndpoints(&balance.Set{Endpoints: []balance.Endpoint{{Addr: addr, Health: &balance.Health{}}}})
	now := b.state.Load()
	ep := now.endpoints[0]

	r := &race{backend: b, timeout: time.Second, targets: now}
	r.ended.L = &r.mu
	at, winner, err := r.run(0)
	if err != nil || at != 0 {
		t.Fatal(at, err)
	}
	late, err := ep.dial(ep.present(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	r.running++
	r.arrive(late, 0, true)
	if active, idle := ep.counts(); active != 1 || idle != 1 {
		t.Errorf("%d connections in use and %d idle, want one of each", active, idle)
	}
	ep.discard(winner)
	b.SetEndpoints(&balance.Set{})
	b.forget(b.left[addr])
	if active, idle := ep.counts(); active != 0 || idle != 0 {
		t.Errorf("%d connections in use and %d idle are left", active, idle)
	}
}

// An endpoint is out of the set before it hears of it. What happens in between is
// the race of who chose it before, too.
func TestLeavingBeginsWithTheSet(t *testing.T) {
	b := New(Options{}).Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}})
	b.SetEndpoints(&balance.Set{Endpoints: []balance.Endpoint{{Addr: netip.MustParseAddrPort("127.0.0.1:1"), Health: &balance.Health{}}}})
	chosen := b.state.Load()
	tx := &transaction{backend: b, targets: chosen}
	refused := &failure{reason: connectFailed, endpoint: chosen.endpoints[0]}
	if tx.raced(refused) {
		t.Error("an endpoint that is there refuses, and that is called a race")
	}
	b.state.Store(&targets{set: &balance.Set{}})
	if !tx.raced(refused) {
		t.Error("an endpoint refuses that is out of the set, and that is no race")
	}
}

// A connection that lost a race has carried no request, and its pod may close it while it
// is idle all the same: a request that comes then is none that failed.
func TestWhatLostARaceMayBeClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		if c, err := l.Accept(); err == nil {
			c.Close()
			close(closed)
		}
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.Copy(io.Discard, req.Body)
				io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}
	}()
	t.Cleanup(func() { l.Close(); <-over })
	b := backendOver(t, balance.Policy{}, netip.MustParseAddrPort(l.Addr().String()))
	b.SetTLS(nil)
	e := b.state.Load().endpoints[0]
	c, err := e.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.put(c, time.Now(), b.engine.keeping.Load())
	<-closed
	ex := &exchange.Exchange{Request: exchange.Request{Method: []byte("POST"), Target: []byte("/"), Host: []byte("a.example")}}
	if b.Forward(ex); ex.Response.Status != http.StatusNoContent {
		t.Errorf("got %d %q, want 204", ex.Response.Status, ex.Response.Text)
	}
}
