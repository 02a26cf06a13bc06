package upstream

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/socket"
)

// Connections to pods, of whatever kind, are Options.MaxOpen at most, all together, because
// each takes a descriptor, and what else needs one has none left otherwise: clients, the
// watch on the API server, files. Each takes a place before it is dialled and holds it until
// it is closed. Where there is none, idle connections are closed for it; where none is idle
// either, there is no connection, which is no fault of the pod's: the request is answered
// 503 at once, and asks no other endpoint.

// errNoPlace says that there are as many connections as there may be.
var errNoPlace = errors.New("there are as many connections to endpoints as there may be, see upstream-max-connections")

// isOurs reports whether a connection was not made because we lack something for it.
func isOurs(err error) bool { return errors.Is(err, errNoPlace) || socket.IsShortage(err) }

const (
	// barrenFor is how long nobody searches after a search in vain, unless a connection of
	// HTTP/1.1 has come idle: else each request of an overload would look at every endpoint.
	barrenFor = 10 * time.Millisecond
	// spareAtOnce and spareShare bound how many connections to one endpoint are closed for
	// the first that needs a place: those that follow need not search.
	spareAtOnce = 32
	spareShare  = 8
	// spareAfter is how long a connection of HTTP/2 has been idle that is closed for
	// another: those who wait for it may not have opened their streams yet.
	spareAfter = 100 * time.Millisecond
)

// places counts the connections to pods that are open, or being made.
type places struct {
	open      atomic.Int64
	searching sync.Mutex   // nobody searches beside another, who may find something for both
	barren    atomic.Int64 // when a search ended in vain, in ns of Unix time; or one of the next two
	refused   atomic.Uint64
	spared    atomic.Uint64
}

const (
	promising = 0  // a search may find something
	unsure    = -1 // there is one, and nothing has come idle since it began
)

// take takes one of so many places, if any is free.
func (p *places) take(most int) bool {
	for n := p.open.Load(); n < int64(most); n = p.open.Load() {
		if p.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (p *places) free() { p.open.Add(-1) }

// idled is told when a connection has come idle. Each request passes here, so it only reads
// while nobody has searched in vain.
func (p *places) idled() {
	if p.barren.Load() != promising {
		p.barren.Store(promising)
	}
}

// isBarren reports whether a search would find nothing.
func (p *places) isBarren() bool {
	at := p.barren.Load()
	return at > 0 && time.Since(time.Unix(0, at)) < barrenFor
}

// takePlace takes a place for one more connection, if it must, from those that are idle.
func (e *Engine) takePlace() bool {
	most := e.keeping.Load().MaxOpen
	if e.places.take(most) || !e.places.isBarren() && e.makePlace(most) {
		return true
	}
	e.places.refused.Add(1)
	return false
}

// makePlace closes idle connections until there is a place, and takes it.
func (e *Engine) makePlace(most int) bool {
	p := &e.places
	p.searching.Lock()
	defer p.searching.Unlock()
	for !p.take(most) {
		if p.isBarren() { // as somebody else has found meanwhile
			return false
		}
		p.barren.Store(unsure)
		n := e.spare(time.Now())
		if n == 0 {
			p.barren.CompareAndSwap(unsure, time.Now().UnixNano())
			return false
		}
		p.barren.Store(promising)
		p.spared.Add(uint64(n))
	}
	return true
}

// spare closes idle connections to some endpoint, if there are any, and returns how many.
// No backend is always the first.
func (e *Engine) spare(now time.Time) (n int) {
	for _, b := range e.list() {
		if n = b.spare(now); n > 0 {
			break
		}
	}
	return n
}

// spare closes idle connections to one endpoint, if there are any, and returns how many.
func (b *Backend) spare(now time.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range b.all() {
		if n = e.spare(now); n > 0 {
			break
		}
	}
	return n
}

// spare closes those of the endpoint that have been idle the longest.
func (e *endpoint) spare(now time.Time) int {
	e.mu.Lock()
	n := len(e.idle)
	if n > 0 {
		n = min(max(n/spareShare, 1), spareAtOnce)
	}
	old := e.cut(n)
	if n == 0 {
		old = e.shared.spare(now)
	}
	e.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
	return len(old)
}

// spare takes a connection out that has been idle for a while, if there is one.
func (sh *shared) spare(now time.Time) []*conn {
	for _, l := range sh.conns {
		if since, idle := l.Idle(); idle && now.Sub(since) >= spareAfter && l.ShutIdle() {
			sh.prune()
			return []*conn{l.conn}
		}
	}
	return nil
}

// tellRefused says how many were refused since it was asked last.
func (e *Engine) tellRefused(told uint64) uint64 {
	now := e.places.refused.Load()
	if now != told {
		e.options.Log.Warn("requests are answered 503: there are as many connections to endpoints as there may be, see upstream-max-connections",
			"refused", now-told, "most", e.keeping.Load().MaxOpen)
	}
	return now
}
