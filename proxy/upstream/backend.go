package upstream

import (
	"crypto/tls"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// Backend is one port of one Service. It is made by Engine.Backend.
type Backend struct {
	of     route.Backend
	name   string // "namespace-service-port"
	engine *Engine
	picker balance.Picker
	state  atomic.Pointer[targets]
	stats  stats
	tls    atomic.Pointer[tls.Config] // nil: plain TCP

	mu      sync.Mutex // serialises SetEndpoints
	retired bool       // endpoints are not health-checked
}

// targets is a set and, at the same indexes, the connections to its endpoints.
type targets struct {
	set       *balance.Set
	endpoints []*endpoint
}

// SetEndpoints declares the endpoints. Requests that come after it returns are
// sent to them only; requests under way are left to finish. The set takes over
// the health of the endpoints it shares with the one before.
func (b *Backend) SetEndpoints(set *balance.Set) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.state.Load()
	have := map[netip.AddrPort]*endpoint{}
	for _, e := range old.endpoints {
		have[e.addr] = e
	}
	set = set.Keep(old.set)
	set.Joined(old.set, time.Now())
	now := &targets{set: set, endpoints: make([]*endpoint, len(set.Endpoints))}
	for i := range set.Endpoints {
		addr := set.Endpoints[i].Addr
		e := have[addr]
		if e == nil {
			e = newEndpoint(addr, b)
		}
		delete(have, addr)
		now.endpoints[i] = e
		b.watchOver(e, set.Endpoints[i].Health)
	}
	b.state.Store(now)
	for _, e := range have {
		e.leave()
	}
}

// retire closes idle connections and keeps no more.
func (b *Backend) retire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retired = true
	for _, e := range b.state.Load().endpoints {
		e.unwatch()
		e.retire()
	}
}

// Endpoints returns the set in force.
func (b *Backend) Endpoints() *balance.Set { return b.state.Load().set }

// Empty reports whether there is no endpoint to ask.
func (b *Backend) Empty() bool { return len(b.state.Load().endpoints) == 0 }

// Of is what leads to the backend.
func (b *Backend) Of() route.Backend { return b.of }

// Forward sends the request of ex to one of the endpoints and puts the answer
// into ex.Response, whose Body, if any, the caller closes. Where there is no
// answer, the response says why in words meant for the client.
func (b *Backend) Forward(ex *exchange.Exchange) {
	t := b.engine.acquire(b, ex)
	if err := t.run(); err != nil {
		t.answer(err)
		t.release()
	}
}
