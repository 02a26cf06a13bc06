package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/cluster/snapshot"
)

// holdOff is how long a change waits for others to come with it. Endpoints and
// answers to writes do not wait.
const holdOff = 2 * time.Millisecond

// Source publishes what is known of a cluster. It is part of an API or Files,
// whose Run moves it.
type Source struct {
	current atomic.Pointer[snapshot.Cluster]
	synced  chan struct{}
	stopped chan struct{} // closed when the loop ends
	inbox   *inbox
	ledger  *ledger // the loop's alone
	// references is nil where everything is seen anyway.
	references *references

	mu          sync.Mutex
	subscribers map[*Subscription]struct{}
}

func newSource(waitFor []snapshot.Kind) *Source {
	s := &Source{
		synced:      make(chan struct{}),
		stopped:     make(chan struct{}),
		inbox:       newInbox(),
		ledger:      newLedger(waitFor),
		subscribers: map[*Subscription]struct{}{},
	}
	s.current.Store(s.ledger.cluster)
	return s
}

// Snapshot returns what is known now. It is never nil and never changes; before
// Synced it may lack objects.
func (s *Source) Snapshot() *snapshot.Cluster { return s.current.Load() }

// Synced is closed once every kind that was asked for has been seen in full, or
// is known not to exist.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Watch returns a Subscription to changes of kinds, or of everything.
func (s *Source) Watch(kinds ...snapshot.Kind) *Subscription {
	if len(kinds) == 0 {
		for k := range snapshot.Faults + 1 {
			kinds = append(kinds, k)
		}
	}
	sub := &Subscription{source: s, kinds: kinds, c: make(chan struct{}, 1)}
	sub.signal()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers[sub] = struct{}{}
	return sub
}

// Subscription signals changes of kinds.
type Subscription struct {
	source *Source
	kinds  []snapshot.Kind
	c      chan struct{}
}

// C is ready when the snapshot has changed since it was last received from; it
// is ready at first, so that one loop serves the first snapshot and all later
// ones. Changes in between are one. It is never closed.
func (s *Subscription) C() <-chan struct{} { return s.c }

// Stop ends the subscription.
func (s *Subscription) Stop() {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	delete(s.source.subscribers, s)
}

func (s *Subscription) signal() {
	select {
	case s.c <- struct{}{}:
	default: // one is already waiting to be seen
	}
}

// loop owns the ledger until ctx ends. Only these things happen in it, one at a
// time: changes are taken from the inbox, entered, published, and subscribers
// are woken.
func (s *Source) loop(ctx context.Context) {
	defer close(s.stopped)
	hold := time.NewTimer(0)
	defer hold.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.inbox.ready:
		}
		if !s.inbox.isUrgent() {
			hold.Reset(holdOff)
			select {
			case <-ctx.Done():
				return
			case <-s.inbox.hurry:
			case <-hold.C:
			}
		}
		s.enter(s.inbox.take())
	}
}

// enter applies changes and publishes the outcome.
func (s *Source) enter(changes []change) {
	for _, c := range changes {
		c.apply(s.ledger)
	}
	s.ledger.sweep()
	s.publish(s.ledger.cluster)
	if len(s.ledger.waiting) == 0 && !IsClosed(s.synced) {
		close(s.synced)
	}
	for _, c := range changes {
		if c.entered != nil {
			close(c.entered)
		}
	}
	for _, a := range s.ledger.met() {
		close(a.seen)
	}
}

func (s *Source) publish(c *snapshot.Cluster) {
	old := s.current.Swap(c)
	if old == c {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subscribers {
		if c.Changed(old, sub.kinds...) {
			sub.signal()
		}
	}
}

// tell enters a change and waits until Snapshot shows it.
func (s *Source) tell(ctx context.Context, apply func(*ledger)) error {
	entered := make(chan struct{})
	s.inbox.post(change{apply: apply, urgent: true, entered: entered})
	select {
	case <-entered:
		return nil
	case <-s.stopped:
		return context.Canceled
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// note enters a change soon.
func (s *Source) note(urgent bool, apply func(*ledger)) {
	s.inbox.post(change{apply: apply, urgent: urgent})
}

// IsClosed reports whether c is closed, such as that of Synced or Refer, and does
// not wait for it.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
