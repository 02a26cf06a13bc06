package upstream

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
)

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
	late, err := ep.dial(ep.present, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	r.running++
	r.arrive(late, 0)
	if active, idle := ep.counts(); active != 1 || idle != 1 {
		t.Errorf("%d connections in use and %d idle, want one of each", active, idle)
	}
	ep.discard(winner)
	b.SetEndpoints(&balance.Set{})
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
