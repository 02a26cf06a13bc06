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

// What many requests at once needed serves those that come right after, however few idle
// connections are kept; then it closes, what was used last stays.
func TestConnectionsOutlastAnEbb(t *testing.T) {
	const most, many = 2, 6
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := New(Options{MaxIdle: most}).Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}})
	addr := netip.MustParseAddrPort(l.Addr().String())
	b.SetEndpoints(&balance.Set{Endpoints: []balance.Endpoint{{Addr: addr, Health: &balance.Health{}}}})
	defer b.SetEndpoints(&balance.Set{})
	ep, o := b.state.Load().endpoints[0], b.engine.keeping.Load()
	conns := make([]*conn, many)
	for i := range conns {
		if conns[i], err = ep.dial(ep.present(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Hour / 2) // no ebb is over before
	for _, c := range conns {
		ep.put(c, later, o)
	}
	for i := range many {
		if c := ep.take(later, o); c != conns[many-1-i] {
			t.Fatalf("%d connections were kept, want %d", i, many)
		}
	}
	for _, c := range conns {
		ep.put(c, time.Now(), o)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, idle := ep.counts()
		if idle == most {
			break
		}
		if idle < most || time.Now().After(end) {
			t.Fatalf("%d connections are idle, want %d", idle, most)
		}
	}
	if c := ep.take(time.Now(), o); c != conns[many-1] {
		t.Error("another connection is kept than that which was used last")
	} else {
		b.engine.SetKeeping(Keeping{MaxIdle: -1})
		ep.put(c, time.Now(), b.engine.keeping.Load())
	}
	if _, idle := ep.counts(); idle != most-1 {
		t.Errorf("%d connections are idle, want %d: none is kept any more", idle, most-1)
	}
}
