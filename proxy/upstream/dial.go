package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"quayside.io/proxy/balance"
)

// hedgeAfter is how long connecting to one endpoint takes before another is
// tried as well. A connection within a cluster takes a millisecond; the kernel
// repeats a lost SYN after a second only.
const hedgeAfter = 250 * time.Millisecond

// A pod that is at work on a request has nothing to confirm. So its machine is asked for a
// sign of life, after a while and then each second; see lost. Only after a minute do
// connections end, for the silence may.
const (
	idleBeforeProbe  = 10 * time.Second
	probeInterval    = time.Second
	unansweredProbes = 50
)

// errNotTCP cannot happen: only "tcp" is dialled.
var errNotTCP = errors.New("the dialler returned something else than a TCP connection")

// dial makes a new connection, until ctx ends.
func (e *endpoint) dial(ctx context.Context, timeout time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := e.connect(ctx)
	if err == nil {
		if err = c.shake(ctx); err != nil {
			e.discard(c)
			return nil, err
		}
	}
	return c, err
}

// connect is the part of dial that says nothing to the pod. Every connection to a pod
// begins here, and holds a place until its Close.
func (e *endpoint) connect(ctx context.Context) (*conn, error) {
	engine := e.backend.engine
	if !engine.takePlace() {
		return nil, errNoPlace
	}
	e.backend.stats.dials.Add(1)
	c, err := e.connectTCP(ctx)
	if err != nil {
		engine.places.free()
		return nil, err
	}
	c.placed.Store(true)
	c.config = e.backend.tls.Load()
	e.active.Add(1)
	return c, nil
}

func (e *endpoint) connectTCP(ctx context.Context) (*conn, error) {
	d := net.Dialer{Control: begin(e.addr), KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idleBeforeProbe, Interval: probeInterval, Count: unansweredProbes}}
	nc, err := d.DialContext(ctx, "tcp", e.text)
	if err != nil {
		return nil, err
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		nc.Close()
		return nil, errNotTCP
	}
	c, err := newConn(tcp, e, time.Now())
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// greeting is what a pod says for a start, where it has to say something: over TLS and
// over HTTP/2.
type greeting struct {
	over chan struct{}
	err  error // valid then
}

// meet is dial, and over HTTP/2 waits until the pod has said that it speaks it, until a
// time. The connection of a pod that has not greeted us comes back beside the error. Where
// it was ctx that ended, the pod goes on with its greeting until that time.
func (e *endpoint) meet(ctx context.Context, until time.Time) (*conn, *greeting, error) {
	dialing, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	c, err := e.connect(dialing)
	if err != nil || c.config == nil && !e.backend.of.HTTP2 {
		return c, nil, err
	}
	g := &greeting{over: make(chan struct{})}
	go c.greet(g, until)
	select {
	case <-g.over:
		return c, g, g.err
	case <-ctx.Done():
		return c, g, context.Cause(ctx)
	}
}

// greet lasts until a time, or until the pod leaves.
func (c *conn) greet(g *greeting, until time.Time) {
	defer close(g.over)
	ctx, cancel := context.WithDeadline(c.endpoint.present(), until)
	defer cancel()
	if g.err = c.shake(ctx); g.err == nil && c.endpoint.backend.of.HTTP2 {
		g.err = c.introduce(ctx)
	}
}

// hearOut waits for the word of a pod that was too slow for a request. One that is only
// slow is back in turn then, whatever it has lost meanwhile, and its connection serves the
// next request.
func (e *endpoint) hearOut(c *conn, g *greeting, health *balance.Health) {
	<-g.over
	if g.err != nil {
		e.discard(c)
		return
	}
	health.Succeeded()
	e.put(c, time.Now(), e.backend.engine.keeping.Load())
}

// dial makes a connection to the endpoint chosen or, where that takes long, to
// another one. It is nil where that one has a connection of HTTP/2 with room.
func (t *transaction) dial() (*conn, error) { return t.dialWithin(t.rules.ConnectTimeout) }

// dialWithin is dial with another timeout than the route's.
func (t *transaction) dialWithin(timeout time.Duration) (*conn, error) {
	r := &race{
		backend: t.backend, timeout: timeout, targets: t.targets,
		tried:  append(t.tried[:len(t.tried):len(t.tried)], t.at),
		counts: t.counted != nil,
	}
	r.ended.L = &r.mu
	at, c, err := r.run(t.at)
	if err != nil {
		// The race is over, so the hedges write to r.tried no more.
		t.tried = append(t.tried[:0], r.tried...)
		return nil, r.failure(at, err)
	}
	if at != t.at && t.counted != nil {
		t.uncount()
		t.counted = t.targets.set.Endpoints[at].Health // the hedge has begun it
	}
	t.at, t.since = at, time.Now()
	return c, nil
}

// race makes one connection. It begins with the endpoint chosen; for each
// hedgeAfter that passes another joins, and the first connection made wins. It
// shares no memory with the transaction, which does not wait for the losers.
type race struct {
	backend *Backend
	timeout time.Duration // of each dial
	targets *targets
	counts  bool // what each endpoint has under way; the first dial's is the transaction's business

	mu      sync.Mutex
	ended   sync.Cond // a hedge has
	timer   *time.Timer
	tried   []int // indexes of targets, that of the first dial among them
	running int   // hedges
	cancels []context.CancelFunc
	over    bool
	won     bool  // a hedge has
	hedged  *conn // its connection; nil if there is one with room already
	at      int   // its index
}

// run dials the endpoint at first and returns the connection that won, with its
// index, or the error of the first dial.
func (r *race) run(first int) (int, *conn, error) {
	r.mu.Lock()
	began, ctx := r.enter(first)
	if len(r.targets.endpoints) > 1 {
		r.timer = time.AfterFunc(hedgeAfter, r.hedge)
	}
	r.mu.Unlock()
	c, err := r.dial(ctx, first, began)

	r.mu.Lock()
	defer r.mu.Unlock()
	for c == nil && !r.won && r.running > 0 {
		r.ended.Wait()
	}
	r.over = true
	r.stop()
	switch {
	case c != nil:
		if r.won {
			r.lose(r.hedged, r.at)
		}
		return first, c, nil
	case r.won:
		return r.at, r.hedged, nil
	}
	return first, nil, err
}

// enter returns when a dial to the endpoint at index at begins, before the next joins,
// and its context: it ends when another has won, or when the endpoint leaves the set. It
// needs the lock.
func (r *race) enter(at int) (time.Time, context.Context) {
	ctx, cancel := context.WithCancel(r.targets.endpoints[at].present())
	r.cancels = append(r.cancels, cancel)
	return time.Now(), ctx
}

// stop ends every dial. It needs the lock.
func (r *race) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
	for _, cancel := range r.cancels {
		cancel()
	}
}

// dial makes one connection that requests may be sent over and tells the endpoint's
// health. Losing counts as a failure until the pod is heard out, else one that swallows
// every SYN would never go out of turn; but who joined so late that no other would have
// joined yet has shown nothing.
func (r *race) dial(ctx context.Context, at int, began time.Time) (*conn, error) {
	e, health := r.targets.endpoints[at], r.targets.set.Endpoints[at].Health
	until := began.Add(r.timeout)
	c, g, err := e.meet(ctx, until)
	now := time.Now()
	switch {
	case err == nil:
		health.Succeeded()
		return c, nil
	case e.present().Err() != nil, isOurs(err):
	case ctx.Err() == nil || now.Sub(began) >= hedgeAfter:
		health.Failed(now)
	}
	switch {
	case c == nil:
	case ctx.Err() != nil:
		go e.hearOut(c, g, health)
	default:
		e.discard(c)
	}
	return nil, err
}

// hedge lets one more endpoint join. It runs in the timer's goroutine.
func (r *race) hedge() {
	r.mu.Lock()
	if r.over || r.won {
		r.mu.Unlock()
		return
	}
	at := r.pick()
	if at < 0 {
		r.mu.Unlock()
		return
	}
	r.tried = append(r.tried, at)
	r.running++
	if r.running < maxTries-1 {
		r.timer.Reset(hedgeAfter)
	}
	began, ctx := r.enter(at)
	r.mu.Unlock()
	r.backend.stats.hedges.Add(1)
	if r.targets.endpoints[at].roomy() != nil {
		r.arrive(nil, at, true)
		return
	}
	c, err := r.dial(ctx, at, began)
	r.arrive(c, at, err == nil)
}

// pick chooses who joins and counts the request there, since a connection won is used
// at once; below 0: nobody can. It needs the lock.
func (r *race) pick() int {
	picker, set := &r.backend.picker, r.targets.set
	for {
		var session balance.Session // wherever it belongs, that endpoint is being tried
		at := picker.Pick(set, time.Now(), &session, r.tried)
		if at < 0 || !r.counts || picker.Begin(set, at) {
			return at
		}
	}
}

// arrive takes the result of a hedge: c, or that requests find a connection there.
func (r *race) arrive(c *conn, at int, good bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	switch {
	case !good, r.over, r.won:
		r.lose(c, at)
	default:
		r.won, r.hedged, r.at = true, c, at
		r.stop()
	}
	r.ended.Broadcast()
}

// lose ends a hedge that did not win. Its connection, if there is one, serves the next
// request.
func (r *race) lose(c *conn, at int) {
	if r.counts {
		r.backend.picker.End(r.targets.set.Endpoints[at].Health)
	}
	if c != nil {
		c.endpoint.put(c, time.Now(), r.backend.engine.keeping.Load())
	}
}

func (r *race) failure(at int, err error) *failure {
	f := &failure{reason: connectFailed, err: err, endpoint: r.targets.endpoints[at]}
	var h *handshake
	var u *unspoken
	switch {
	case isOurs(err): // and it would lack whatever it is for another endpoint as well
		return &failure{reason: overloaded, err: err}
	case os.IsTimeout(err), errors.Is(err, context.DeadlineExceeded): // the dialler's own timeout is no os.ErrDeadlineExceeded
		f.reason = connectTimeout
	case errors.As(err, &h):
		f.reason = tlsFailed
	case errors.As(err, &u):
		f.reason, f.again = badResponse, true
	}
	return f
}
