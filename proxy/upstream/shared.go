package upstream

import (
	"context"
	"errors"
	"slices"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/streams"
)

// shared are the connections of HTTP/2 to one endpoint. A request takes the first
// that has room, so that those behind it fall idle when there is less to do. The
// endpoint's lock guards it.
type shared struct {
	conns   []*link
	flights []*flight
}

// link is a connection of HTTP/2.
type link struct {
	*streams.Conn
	conn *conn
}

// flight is a connection being made, and those who wait for it instead of each
// making one.
type flight struct {
	landed  chan struct{}
	timeout time.Duration // of who makes it
	waiting int
	err     error // valid once landed
}

// usualLimit is how many requests are expected to fit on a connection of which
// nothing is known yet; 100 is the least that RFC 9113 section 6.5.2 recommends.
const usualLimit = 100

// maxLeads is how many connections one request makes before it is told that there
// is no room: a pod may say that it takes none, and others may be quicker.
const maxLeads = 4

// errElsewhere ends the wait for a connection: another endpoint was quicker.
var errElsewhere = errors.New("another endpoint was quicker to connect")

// open begins the request on a connection that has room for it, or returns nil.
func (e *endpoint) open(t *transaction) *streams.Stream {
	for l := e.roomy(); l != nil; l = e.roomy() {
		if s, err := l.Open(&t.ex.Request, t.inline, !t.streaming); err == nil {
			t.over = l.conn
			return s
		}
	}
	return nil
}

// roomy returns a connection that takes one more request, or nil.
func (e *endpoint) roomy() *link {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shared.roomy()
}

func (sh *shared) roomy() *link {
	for _, l := range sh.conns {
		if l.Roomy() {
			return l
		}
	}
	return nil
}

// board returns the connection being made that the caller may wait for, or else
// makes it begin one, with this timeout: then leads is true. Nil: there are as many as
// there may be. One that has landed since the caller looked is a flight of the past, to
// go on with.
func (e *endpoint) board(o *Options, timeout time.Duration) (f *flight, leads bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	sh := &e.shared
	sh.prune()
	if sh.roomy() != nil {
		return landed(), false
	}
	limit := usualLimit
	if n := len(sh.conns); n > 0 {
		limit = max(sh.conns[n-1].Limit(), 1)
	}
	for _, f := range sh.flights {
		if f.waiting < min(limit, o.MaxStreams) {
			f.waiting++
			return f, false
		}
	}
	if len(sh.conns)+len(sh.flights) >= o.MaxShared {
		return nil, false
	}
	f = &flight{landed: make(chan struct{}), timeout: timeout, waiting: 1}
	sh.flights = append(sh.flights, f)
	return f, true
}

// alight gives a place up of who waits no more.
func (e *endpoint) alight(f *flight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f.waiting--
}

// landed is a flight that is over, well.
func landed() *flight {
	f := &flight{landed: make(chan struct{})}
	close(f.landed)
	return f
}

// land tells those who wait what came of it.
func (e *endpoint) land(f *flight, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shared.flights = slices.DeleteFunc(e.shared.flights, func(g *flight) bool { return g == f })
	f.err = err
	close(f.landed)
}

// share makes a new connection, whose pod speaks HTTP/2, one for many requests.
func (e *endpoint) share(c *conn) {
	e.active.Add(-1) // it is counted here from now on
	l := &link{c.http2, c}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone || c.config != e.backend.tls.Load() {
		l.Shut()
	}
	e.shared.conns = append(e.shared.conns, l)
}

// prune forgets connections that take no more requests; they end by themselves.
func (sh *shared) prune() {
	sh.conns = slices.DeleteFunc(sh.conns, func(l *link) bool { return !l.Usable() })
}

// shut lets every connection end with the requests that it carries.
func (sh *shared) shut() {
	for _, l := range sh.conns {
		l.Shut()
	}
	sh.conns = nil
}

// sweep shuts what has been idle for too long, or is too old.
func (sh *shared) sweep(now time.Time, o *Options) {
	for _, l := range sh.conns {
		if since, idle := l.Idle(); idle && now.Sub(since) >= o.IdleTimeout || now.Sub(l.conn.born) >= o.MaxLifetime {
			l.Shut()
		}
	}
	sh.prune()
}

func (sh *shared) counts() (busy, idle int) {
	for _, l := range sh.conns {
		if _, free := l.Idle(); free {
			idle++
		} else {
			busy++
		}
	}
	return busy, idle
}

// openStream begins the request on a connection to the endpoint chosen. Where none
// has room, it waits for one that is being made, or makes it.
func (t *transaction) openStream() (*streams.Stream, error) {
	timeout := t.rules.ConnectTimeout
	for made := 0; ; {
		e := t.targets.endpoints[t.at]
		if s := e.open(t); s != nil {
			return s, nil
		}
		var f *flight
		var leads bool
		if made < maxLeads {
			f, leads = e.board(t.engine.keeping.Load(), timeout)
		}
		switch {
		case f == nil:
			t.tried = append(t.tried, t.at) // another may have room
			return nil, &failure{reason: overloaded, again: true}
		case leads:
			made++
			if err := t.lead(e, f); err != nil {
				return nil, err
			}
		default:
			var err error
			if timeout, err = t.follow(e, f, timeout); err != nil {
				return nil, err
			}
		}
		t.linked = time.Since(t.chosen)
	}
}

// lead makes the connection that f waits for.
func (t *transaction) lead(e *endpoint, f *flight) (err error) {
	defer func() {
		if err == nil && t.targets.endpoints[t.at] != e {
			e.land(f, errElsewhere)
			return
		}
		e.land(f, err)
	}()
	c, err := t.dialWithin(f.timeout)
	if err != nil {
		return err
	}
	if c != nil {
		c.endpoint.share(c)
	}
	return nil
}

// follow waits for the connection that another request makes, as long as our own client
// and route allow: those of that request may be more patient. It returns how long a
// connection may still take, which is less than timeout where that request was less
// patient than we are and has given up.
func (t *transaction) follow(e *endpoint, f *flight, timeout time.Duration) (time.Duration, error) {
	until := time.Now().Add(timeout)
	if err := t.ride(e, f, until); err != nil {
		return 0, err
	}
	if f.err == nil {
		return timeout, nil
	}
	if isOurs(f.err) {
		return 0, &failure{reason: overloaded, err: f.err}
	}
	made := &failure{reason: connectTimeout, err: f.err}
	if errors.As(f.err, &made) && made.endpoint == e && made.reason == connectTimeout && f.timeout < timeout && e.present().Err() == nil {
		if left := time.Until(until); left > 0 {
			return left, nil
		}
	}
	t.tried = append(t.tried, t.at)
	if made.endpoint != e {
		return 0, &failure{reason: connectTimeout, err: f.err, endpoint: e}
	}
	return 0, &failure{reason: made.reason, err: made.err, endpoint: e, again: made.again}
}

// ride waits until f has landed, or our time is over.
func (t *transaction) ride(e *endpoint, f *flight, until time.Time) error {
	var gone chan struct{} // nil: the client is looked at from time to time
	if peer, ok := t.ex.Request.Peer.(exchange.Waker); ok {
		gone = make(chan struct{}, 1)
		peer.WakeWhenGone(gone)
		defer peer.WakeWhenGone(nil)
	}
	for {
		t.wakeIn(min(time.Until(until), patience))
		select {
		case <-f.landed:
			return nil
		case <-gone:
		case <-t.timer.C:
		}
		if p := t.ex.Request.Peer; p != nil && p.Gone() {
			e.alight(f)
			return &failure{reason: clientGone}
		}
		if time.Until(until) <= 0 {
			e.alight(f)
			t.tried = append(t.tried, t.at)
			return &failure{reason: connectTimeout, err: context.DeadlineExceeded, endpoint: e}
		}
	}
}

// unspoken is what a pod says instead of speaking HTTP/2.
type unspoken struct{ error }

func (u *unspoken) Unwrap() error { return u.error }

// introduce begins to speak HTTP/2 and waits until the pod has said that it does.
func (c *conn) introduce(ctx context.Context) error {
	engine := c.endpoint.backend.engine
	c.endSilent(engine.options.SendTimeout) // streams may stay for hours
	c.http2 = engine.http2.Start(c, c.secure != nil)
	select {
	case <-c.http2.Ready():
		if err := c.http2.Err(); err != nil {
			return &unspoken{err}
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
