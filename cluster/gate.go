package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"quayside.io/cluster/snapshot"
)

const (
	// fleetRate is how many lists, watches and writes per second the speakers of a
	// cluster together send to an API server that does not answer, or comes back.
	fleetRate = 350
	// While it does not, a process asks after the first delay, which doubles up to the
	// last, and less often where the fleet is large.
	firstDelay, lastDelay = 200 * time.Millisecond, 5 * time.Second
	// askPatience is how long the others wait for an answer to who asks for all.
	askPatience = 10 * time.Second
	// After a watch has broken, all that the process wants waits with it: for as long as it
	// takes until that asks again.
	breakTime = time.Second
	// comesAgain is longer than any back-off between two attempts to watch.
	comesAgain = 10 * time.Second
)

// gate lets lists and watches through, and the writes of a process that each node has. An
// API server that fails, fails for a whole fleet at once, and each process has a dozen
// watches. While the server does not answer, one of them asks for all. Once it does, they
// follow each other at a distance that grows with the fleet, Services and EndpointSlices
// first. A watch whose time is over does not wait, since nothing is broken; unless others
// of this process do: then the server has gone just before that time.
//
// What has never been asked for does not wait here either: the lists with which a process
// starts have waited before, see start.
type gate struct {
	fleet func() int // how many processes have such a gate

	mu      sync.Mutex
	waiting []*ticket   // who came first is first
	timer   *time.Timer // admits a waiter; nil: none has waited yet
	next    time.Time   // nobody before
	lost    bool        // the server did not answer when it was last asked
	delay   time.Duration
	asker   *ticket // who asks for all
	asked   time.Time
	broken  time.Time // a watch has, for the last time
	failed  time.Time // a request, the same
}

// ticket is one request at the gate.
type ticket struct {
	kind snapshot.Kind
	pass chan struct{} // closed when it may go
}

func newGate(fleet func() int) *gate { return &gate{fleet: fleet} }

// distance lies between two requests of this process, on average.
func (g *gate) distance() time.Duration { return time.Duration(g.fleet()) * time.Second / fleetRate }

// around is d, more or less: who has lost a server together comes back apart.
func around(d time.Duration) time.Duration {
	return time.Duration((0.5 + rand.Float64()) * float64(d))
}

// broke notes that a watch has just broken.
func (g *gate) broke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = time.Now()
}

// enter waits until a request for a kind may be sent; broken says that something went
// wrong before it. What came of it, leave is to be told.
func (g *gate) enter(ctx context.Context, kind snapshot.Kind, broken bool) (*ticket, error) {
	t := &ticket{kind: kind, pass: make(chan struct{})}
	g.mu.Lock()
	if !g.lost && !broken && len(g.waiting) == 0 && time.Since(g.broken) > breakTime {
		g.mu.Unlock()
		return t, nil
	}
	g.waiting = append(g.waiting, t)
	g.arm()
	g.mu.Unlock()
	select {
	case <-t.pass:
		return t, nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		g.leave(ctx, t, err)
		return nil, err
	}
}

// leave says how a request ended: without an error, with one, or because ctx did.
func (g *gate) leave(ctx context.Context, t *ticket, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	forAll := g.asker == t
	if forAll {
		g.asker = nil
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(o *ticket) bool { return o == t })
	switch {
	case isAnswer(err):
		if g.lost {
			g.next = time.Now().Add(around(g.distance()))
		}
		g.lost, g.delay = false, 0
	case ctx.Err() != nil: // we hung up
	case !g.lost:
		g.lost, g.failed = true, time.Now()
		g.holdBack(firstDelay)
	case forAll:
		g.failed = time.Now()
		g.holdBack(min(2*g.delay, lastDelay))
	}
	g.arm()
}

// isAnswer reports whether err, or none, came from a server that works.
func isAnswer(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return err == nil
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// isWaiting reports whether something is not watched, and waits for its turn. While the
// server is lost, that may be who has failed and comes again; when nobody does for that
// long it was a write, or what is not wanted any more.
func (g *gate) isWaiting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting) > 0 || g.lost && (g.asker != nil || time.Since(g.failed) < comesAgain)
}

// The rest needs the lock.

// holdBack admits no request for about d.
func (g *gate) holdBack(d time.Duration) {
	g.delay = d
	g.next = time.Now().Add(around(max(d, g.distance())))
}

// arm sets the timer for the next waiter.
func (g *gate) arm() {
	if len(g.waiting) == 0 {
		return
	}
	now := time.Now()
	at := g.next
	switch {
	case g.lost && g.asker != nil:
		at = g.asked.Add(askPatience)
	case !g.lost && at.Before(now): // none has just been admitted
		at = now.Add(time.Duration(rand.Float64() * float64(around(g.distance()))))
		g.next = at
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(at.Sub(now), g.admit)
	} else {
		g.timer.Reset(at.Sub(now))
	}
}

// admit admits a waiter that is due.
func (g *gate) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if busy := g.lost && g.asker != nil && now.Before(g.asked.Add(askPatience)); len(g.waiting) == 0 || busy || now.Before(g.next) {
		g.arm()
		return
	}
	t := g.waiting[0] // of those who fail, none is to ask again before the others
	if g.lost {
		g.asker, g.asked = t, now
	} else {
		t = slices.MinFunc(g.waiting, func(a, b *ticket) int { return int(a.kind) - int(b.kind) })
		g.next = now.Add(around(g.distance()))
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(o *ticket) bool { return o == t })
	close(t.pass)
	g.arm()
}
