package upstream

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/balance"
)

// ebbAfter is how long more than MaxIdle connections are kept: clients of HTTP/2 ask for
// hundreds of things at once, which come and go together. What is above MaxIdle would be
// closed by each ebb and made anew by each flood, which costs as much as the requests.
const ebbAfter = time.Second

// endpoint keeps the connections to one address of one backend. It outlives
// the sets that name the address.
type endpoint struct {
	addr    netip.AddrPort
	text    string // addr, as the dialler wants it
	backend *Backend
	active  atomic.Int64
	failed  atomic.Uint64 // tries that came to no good end
	visit   atomic.Pointer[visit]

	// The health that is told of checks, nil for none, and what ends them: the backend's
	// lock guards both.
	watched *balance.Health
	cancel  context.CancelFunc

	mu     sync.Mutex
	idle   []*conn // the most recently used last
	ebbing bool    // there are more than MaxIdle of them, and some are to close
	shared shared  // those that carry many requests
	gone   bool    // no connection is kept
}

func newEndpoint(addr netip.AddrPort, b *Backend) *endpoint {
	e := &endpoint{addr: addr, text: addr.String(), backend: b}
	e.come()
	return e
}

// visit is the time in which sets name an address.
type visit struct {
	present context.Context
	end     context.CancelFunc
}

// come says that a set names the address.
func (e *endpoint) come() {
	v := &visit{}
	v.present, v.end = context.WithCancel(context.Background())
	e.visit.Store(v)
}

// present ends when no set names the address any more.
func (e *endpoint) present() context.Context { return e.visit.Load().present }

// take returns an idle connection, or nil if there is none worth using. The
// most recently used is the likeliest to be alive, and the others may age.
func (e *endpoint) take(now time.Time, o *Options) *conn {
	for {
		c := e.pop()
		if c == nil {
			return nil
		}
		if now.Sub(c.idleSince) < o.IdleTimeout && now.Sub(c.born) < o.MaxLifetime && c.used < o.MaxRequests {
			e.active.Add(1)
			c.quiet = c.drained && now.Sub(c.idleSince) < quietFor
			return c
		}
		c.Close()
	}
}

func (e *endpoint) pop() *conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.idle)
	if n == 0 {
		return nil
	}
	c := e.idle[n-1]
	e.idle[n-1] = nil
	e.idle = e.idle[:n-1]
	return c
}

// put gives a connection back for the next request.
func (e *endpoint) put(c *conn, now time.Time, o *Options) {
	if e.backend.of.HTTP2 {
		e.share(c)
		return
	}
	e.active.Add(-1)
	c.idleSince, c.kept = now, true
	e.mu.Lock()
	if e.gone || o.MaxIdle == 0 || c.config != e.backend.tls.Load() {
		e.mu.Unlock()
		c.Close()
		return
	}
	e.idle = append(e.idle, c)
	e.ebbs(o)
	e.mu.Unlock()
	e.backend.engine.places.idled()
}

// ebbs sees to it that what is idle beyond MaxIdle closes. It needs the lock.
func (e *endpoint) ebbs(o *Options) {
	if len(e.idle) > o.MaxIdle && !e.ebbing {
		e.ebbing = true
		time.AfterFunc(ebbAfter, e.ebb)
	}
}

// ebb closes what was not needed by the last flood.
func (e *endpoint) ebb() {
	now, o := time.Now(), e.backend.engine.keeping.Load()
	e.mu.Lock()
	n := 0
	for len(e.idle)-n > o.MaxIdle && now.Sub(e.idle[n].idleSince) >= ebbAfter {
		n++
	}
	old := e.cut(n)
	e.ebbing = false
	e.ebbs(o)
	e.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

// cut takes the first n out of the list: those that have been idle the longest. It needs
// the lock.
func (e *endpoint) cut(n int) []*conn {
	old := append([]*conn(nil), e.idle[:n]...)
	kept := copy(e.idle, e.idle[n:])
	clear(e.idle[kept:])
	e.idle = e.idle[:kept]
	return old
}

// discard closes a connection that take or dial gave out.
func (e *endpoint) discard(c *conn) {
	e.active.Add(-1)
	c.Close()
}

// leave is for an address that no set names any more: who is connecting there
// gives up at once. Its connections stay, see Backend.leave.
func (e *endpoint) leave() {
	e.unwatch()
	e.visit.Load().end()
}

// closeIdle closes the idle connections.
func (e *endpoint) closeIdle() {
	e.mu.Lock()
	idle := e.idle
	e.idle = nil
	e.shared.shut()
	e.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// retire closes the idle connections and keeps none from now on; those in use
// close when their request is done.
func (e *endpoint) retire() {
	e.mu.Lock()
	e.gone = true
	e.mu.Unlock()
	e.closeIdle()
}

// sweep closes what has been idle for too long. The list is ordered by the time
// of return, so the old ones are at its front.
func (e *endpoint) sweep(now time.Time, o *Options) {
	e.mu.Lock()
	n := 0
	for n < len(e.idle) && now.Sub(e.idle[n].idleSince) >= o.IdleTimeout {
		n++
	}
	old := e.cut(n)
	e.shared.sweep(now, o)
	e.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

func (e *endpoint) counts() (active, idle int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	busy, free := e.shared.counts()
	return int(e.active.Load()) + busy, len(e.idle) + free
}
