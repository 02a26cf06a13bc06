package upstream

import (
	"crypto/tls"
	"iter"
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
	left    map[netip.AddrPort]*departed
}

// departed is an endpoint that no set names any more, and what closes its connections.
type departed struct {
	*endpoint
	closing *time.Timer
}

// awayFor is how long the connections to an endpoint stay that has left: a pod whose
// readiness flaps is back soon. One that ends closes them itself.
const awayFor = time.Second

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
			e = b.arrival(addr)
		}
		delete(have, addr)
		now.endpoints[i] = e
		b.watchOver(e, set.Endpoints[i].Health)
	}
	b.state.Store(now)
	for _, e := range have {
		b.leave(e)
	}
}

// arrival is the endpoint at an address that the set before did not name. It needs the lock.
func (b *Backend) arrival(addr netip.AddrPort) *endpoint {
	d := b.left[addr]
	if d == nil {
		return newEndpoint(addr, b)
	}
	d.closing.Stop()
	delete(b.left, addr)
	d.come()
	return d.endpoint
}

// leave is for an endpoint that no set names any more. It needs the lock.
func (b *Backend) leave(e *endpoint) {
	e.leave()
	if b.retired {
		e.retire()
		return
	}
	if b.left == nil {
		b.left = map[netip.AddrPort]*departed{}
	}
	d := &departed{endpoint: e}
	d.closing = time.AfterFunc(awayFor, func() { b.forget(d) })
	b.left[e.addr] = d
}

// forget closes the connections to an endpoint that has not come back.
func (b *Backend) forget(d *departed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left[d.addr] == d {
		delete(b.left, d.addr)
		d.retire()
	}
}

// all are the endpoints that there are connections to. It needs the lock.
func (b *Backend) all() iter.Seq[*endpoint] {
	return func(yield func(*endpoint) bool) {
		for _, e := range b.state.Load().endpoints {
			if !yield(e) {
				return
			}
		}
		for _, d := range b.left {
			if !yield(d.endpoint) {
				return
			}
		}
	}
}

// retire closes idle connections and keeps no more.
func (b *Backend) retire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retired = true
	for e := range b.all() {
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
