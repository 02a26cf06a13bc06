package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"quayside.io/cluster/snapshot"
)

// Refer declares which objects of a kind are wanted; the latest call for a kind counts.
// EndpointSlices are named by their Services, and the empty key means all. Of the kinds
// in APIOptions.Referenced nothing else is watched. The channel is closed once Snapshot
// shows all of them that exist and may be read. Files hold what they hold, so there it is
// closed at once.
func (s *Source) Refer(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{} {
	seen := make(chan struct{})
	if s.references == nil || !s.references.follows(kind) {
		close(seen)
		return seen
	}
	scopes := scopesFor(kind, keys, s.references.byName)
	waiting := &awaited{scopes: maps.Clone(scopes), seen: seen}
	s.references.want(kind, scopes, waiting, func() {
		s.note(true, func(l *ledger) {
			l.supersede(kind, scopes)
			l.await(waiting)
		})
	})
	return seen
}

// answer lets callers of Refer be answered: all that the watches before theirs had to say has
// been said.
func (s *Source) answer(waiting []*awaited) {
	if len(waiting) == 0 {
		return
	}
	s.note(true, func(l *ledger) {
		for _, a := range waiting {
			a.due = true
		}
	})
}

// references are the scopes that Refer asks for.
type references struct {
	kinds  []snapshot.Kind
	byName func(snapshot.Kind, string) bool // all of that namespace are watched by name
	news   chan struct{}

	mu      sync.Mutex
	wanted  map[snapshot.Kind]map[scope]bool
	watched map[scope]bool // those of the latest turn
	waiting []*awaited     // for the next
}

func newReferences(kinds []snapshot.Kind) *references {
	return &references{kinds: kinds, byName: func(snapshot.Kind, string) bool { return false }, news: make(chan struct{}, 1), wanted: map[snapshot.Kind]map[scope]bool{}}
}

func (r *references) follows(kind snapshot.Kind) bool { return slices.Contains(r.kinds, kind) }

// want makes scopes those of a kind that are wanted, and has it told in the order of calls.
// Where all of them are watched, and stay so, a may be answered at once, and else after the
// next turn only: what was named before, and then was not, is still there until it is dropped.
func (r *references) want(kind snapshot.Kind, scopes map[scope]bool, a *awaited, tell func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted[kind] = scopes
	wake(r.news)
	a.due = true
	for s := range scopes {
		a.due = a.due && r.watched[s]
	}
	if !a.due {
		r.waiting = append(r.waiting, a)
	}
	tell()
}

// turn returns every scope that is wanted now, all of which are to be watched, and who may be
// answered when they are.
func (r *references) turn() (wanted map[scope]bool, waiting []*awaited) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted = map[scope]bool{}
	for _, scopes := range r.wanted {
		maps.Copy(wanted, scopes)
	}
	waiting, r.waiting, r.watched = r.waiting, nil, wanted
	return wanted, waiting
}

// areSaid reports whether it is known of every kind which of it are wanted.
func (r *references) areSaid() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.kinds, func(k snapshot.Kind) bool { return r.wanted[k] == nil })
}

// adopt wants what a former life of this process wanted, of the kinds of which this
// one has not said anything yet, and has what is wanted then told in the order of calls.
func (r *references) adopt(scopes []scope, tell func(wanted map[snapshot.Kind]map[scope]bool)) {
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
	tell(maps.Clone(r.wanted))
}

// mostPause lies at most between two changes of shared watches. Until one is made, who
// refers to more does not know it.
const mostPause = 2 * time.Second

// watchReferenced keeps the scopes that are wanted watched.
func (a *API) watchReferenced(ctx context.Context) {
	all := map[*group]*running{}
	defer func() {
		for _, r := range all {
			r.stop()
		}
	}()
	var groups []*group
	for {
		wanted, waiting := a.references.turn()
		next := regroup(groups, wanted)
		changed := a.changeGroups(ctx, all, groups, next)
		a.answer(waiting)
		if groups = next; changed {
			// What comes one after the other is watched at once, if many do the same.
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(a.gate.distance(), mostPause)):
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-a.references.news:
		}
	}
}

// changeGroups watches the groups of next instead of those of last, and reports whether
// one goes on where another ended.
func (a *API) changeGroups(ctx context.Context, all map[*group]*running, last, next []*group) (resumed bool) {
	told, had := map[scope]string{}, map[snapshot.Kind][]scope{}
	for _, g := range last {
		if r := all[g]; !slices.Contains(next, g) {
			r.stop()
			r.feed.told(told)
			delete(all, g)
			had[g.kind] = append(had[g.kind], g.scopes...)
		}
	}
	if len(told) > 0 {
		a.note(true, func(l *ledger) { l.resume(told) })
	}
	wanted := map[scope]bool{}
	for _, g := range next {
		if all[g] == nil {
			all[g] = a.startReflector(ctx, newFeed(a.Source, g, told))
			resumed = resumed || all[g].feed.resumes
		}
		maps.Copy(wanted, g.has)
	}
	for kind, scopes := range had {
		scopes = slices.DeleteFunc(scopes, func(s scope) bool { return wanted[s] })
		if len(scopes) > 0 {
			a.forgetScopes(newGroup(kind, "", scopes), wanted)
		}
	}
	return resumed
}

// running is a reflector that runs. stop ends it, and waits until it has said its last word.
type running struct {
	feed *feed
	stop func()
}

func (a *API) startReflector(ctx context.Context, f *feed) *running {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.reflect(ctx, f)
	}()
	return &running{f, func() { cancel(); <-ended }}
}

// forgetScopes drops what was seen through them alone.
func (a *API) forgetScopes(g *group, wanted map[scope]bool) {
	a.contact.forget(g)
	a.note(false, func(l *ledger) {
		l.drop(g, func(at snapshot.Key) bool {
			return slices.ContainsFunc(scopesOf(g.kind, at), func(s scope) bool { return wanted[s] })
		})
	})
}
