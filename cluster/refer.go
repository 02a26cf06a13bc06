package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	"quayside.io/cluster/snapshot"
)

// Refer declares which objects of a kind are wanted; the latest call for a kind
// counts. EndpointSlices are named by their Services, and the empty key means all. Of the kinds in APIOptions.Referenced nothing else is watched. The
// channel is closed once Snapshot shows all of them that exist and may be read.
// Files hold what they hold, so there it is closed at once.
func (s *Source) Refer(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{} {
	seen := make(chan struct{})
	if s.references == nil || !s.references.follows(kind) {
		close(seen)
		return seen
	}
	scopes := scopesFor(kind, keys, s.references.byName)
	s.references.want(kind, scopes)
	waiting := awaited{maps.Clone(scopes), seen}
	s.note(true, func(l *ledger) { l.await(waiting) })
	return seen
}

// references are the scopes that Refer asks for.
type references struct {
	kinds  []snapshot.Kind
	byName func(snapshot.Kind, string) bool // all of that namespace are watched by name
	news   chan struct{}

	mu     sync.Mutex
	wanted map[snapshot.Kind]map[scope]bool
}

func newReferences(kinds []snapshot.Kind) *references {
	return &references{kinds: kinds, byName: func(snapshot.Kind, string) bool { return false }, news: make(chan struct{}, 1), wanted: map[snapshot.Kind]map[scope]bool{}}
}

func (r *references) follows(kind snapshot.Kind) bool { return slices.Contains(r.kinds, kind) }

func (r *references) want(kind snapshot.Kind, scopes map[scope]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted[kind] = scopes
	wake(r.news)
}

// areSaid reports whether it is known of every kind which of it are wanted.
func (r *references) areSaid() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.kinds, func(k snapshot.Kind) bool { return r.wanted[k] == nil })
}

// adopt wants what a former life of this process wanted, of the kinds of which this
// one has not said anything yet.
func (r *references) adopt(scopes []scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	adopted := map[snapshot.Kind]map[scope]bool{}
	for _, s := range scopes {
		if _, said := r.wanted[s.kind]; said || !r.follows(s.kind) {
			continue
		}
		if adopted[s.kind] == nil {
			adopted[s.kind] = map[scope]bool{}
		}
		adopted[s.kind][s] = true
	}
	maps.Copy(r.wanted, adopted)
	wake(r.news)
}

// all returns every scope that is wanted now.
func (r *references) all() map[scope]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[scope]bool{}
	for _, scopes := range r.wanted {
		for s := range scopes {
			all[s] = true
		}
	}
	return all
}

// watchReferenced keeps one reflector running for each scope that is wanted.
func (a *API) watchReferenced(ctx context.Context) {
	running := map[scope]func(){}
	defer func() {
		for _, stop := range running {
			stop()
		}
	}()
	for {
		wanted := a.references.all()
		for s := range wanted { // add before remove
			if running[s] == nil {
				running[s] = a.startReflector(ctx, s)
			}
		}
		for s, stop := range running {
			if !wanted[s] {
				stop()
				delete(running, s)
				a.forgetScope(s, wanted)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-a.references.news:
		}
	}
}

// startReflector returns a function that ends the reflector of s and waits until
// it has said its last word.
func (a *API) startReflector(ctx context.Context, s scope) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.reflect(ctx, s)
	}()
	return func() { cancel(); <-ended }
}

// forgetScope drops what was seen through s alone.
func (a *API) forgetScope(s scope, wanted map[scope]bool) {
	a.contact.forget(s)
	a.note(false, func(l *ledger) {
		l.drop(s, func(at snapshot.Key) bool {
			return slices.ContainsFunc(scopesOf(s.kind, at), func(s scope) bool { return wanted[s] })
		})
	})
}
