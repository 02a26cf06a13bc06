package cluster

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"quayside.io/cluster/snapshot"
)

// tombstoneTime is how long a deletion is remembered. It only has to outlive the
// answer to a write that was sent before the deletion.
const tombstoneTime = time.Minute

// id names an object among all kinds.
type id struct {
	kind snapshot.Kind
	key  snapshot.Key
}

// tombstone remembers a deletion by the resourceVersion at which it happened.
type tombstone struct {
	version string
	since   time.Time
}

// ledger is what the loop of a Source knows. News of one object come from two
// sides, the watch and the answers to our own writes, in any order; the ledger
// keeps the newest by resourceVersion, whichever way it came.
type ledger struct {
	cluster    *snapshot.Cluster
	tombstones map[id]tombstone
	listed     map[scope]string // version of the latest full list
	seen       map[scope]bool   // listed, or known to be unreadable
	awaited    []*awaited
	swept      time.Time
	faults     map[string][]snapshot.Problem // by who reports them
	waiting    map[snapshot.Kind]bool        // kinds not yet seen in full
	recalled   map[scope]bool                // known from a former life only
	alone      bool                          // nothing was heard in this life
	now        func() time.Time
}

// newLedger knows nothing yet, and waits for kinds.
func newLedger(waitFor []snapshot.Kind) *ledger {
	l := &ledger{
		cluster:    snapshot.Unread(),
		tombstones: map[id]tombstone{},
		listed:     map[scope]string{},
		seen:       map[scope]bool{},
		faults:     map[string][]snapshot.Problem{},
		waiting:    map[snapshot.Kind]bool{},
		recalled:   map[scope]bool{},
		now:        time.Now,
	}
	for _, k := range waitFor {
		l.waiting[k] = true
	}
	return l
}

// put enters o unless something newer is known of it.
func (l *ledger) put(o snapshot.Object) {
	if l.isNews(o) {
		l.cluster = l.cluster.With(o)
	}
}

// putAll enters each of objects unless something newer is known of it.
func (l *ledger) putAll(objects []snapshot.Object) {
	var news []snapshot.Object
	for _, o := range objects {
		if l.isNews(o) {
			news = append(news, o)
		}
	}
	l.cluster = l.cluster.With(news...)
}

func (l *ledger) isNews(o snapshot.Object) bool {
	kind, ok := snapshot.KindOf(o)
	if !ok {
		return false
	}
	at := id{kind, snapshot.KeyOf(o)}
	if t, dead := l.tombstones[at]; dead {
		// An object that leaves one scope for another is deleted here and added there
		// at the same version.
		if version := o.GetResourceVersion(); version != t.version && !newer(version, t.version) {
			return false
		}
		delete(l.tombstones, at)
	}
	have, ok := l.cluster.Get(kind, at.key)
	if !ok {
		// A list that did not have it is a tombstone for all that is not known.
		return !slices.ContainsFunc(scopesOf(kind, placeOf(o)), func(s scope) bool {
			floor, listed := l.listed[s]
			return listed && !newer(o.GetResourceVersion(), floor)
		})
	}
	return newer(o.GetResourceVersion(), have.GetResourceVersion()) && !isHeartbeat(have, o)
}

// isHeartbeat reports whether o differs from have in nothing that anyone here
// reads. Only Nodes are compared: they are rewritten every few minutes by
// every kubelet, and Quayside never writes them, so an old resourceVersion does
// no harm.
func isHeartbeat(have, o snapshot.Object) bool {
	was, ok := have.(*corev1.Node)
	if !ok {
		return false
	}
	is := *o.(*corev1.Node)
	is.ResourceVersion = was.ResourceVersion
	return equality.Semantic.DeepEqual(was, &is)
}

// remove notes that the object was deleted at version.
func (l *ledger) remove(kind snapshot.Kind, key snapshot.Key, version string) {
	have, ok := l.cluster.Get(kind, key)
	if ok && newer(have.GetResourceVersion(), version) {
		return // already created again
	}
	l.tombstones[id{kind, key}] = tombstone{version, l.now()}
	if ok {
		l.cluster = l.cluster.Without(kind, key)
	}
}

// replace enters the whole of a group's scopes as they were at version: what is missing
// from objects was deleted, unless it is known to be newer than the list.
func (l *ledger) replace(g *group, objects []snapshot.Object, version string) {
	for _, s := range g.scopes {
		l.forget(s)
		delete(l.listed, s) // it has no say about a later list
	}
	listed := make(map[snapshot.Key]bool, len(objects))
	news := make([]snapshot.Object, 0, len(objects))
	for _, o := range objects {
		listed[snapshot.KeyOf(o)] = true
		if l.isNews(o) {
			news = append(news, o)
		}
	}
	var gone []snapshot.Key
	for o := range l.cluster.Objects(g.kind) {
		if k := snapshot.KeyOf(o); g.covers(placeOf(o)) && !listed[k] {
			gone = append(gone, k)
		}
	}
	for _, k := range gone {
		l.remove(g.kind, k, version)
		if g.kind == snapshot.EndpointSlice {
			// It may be of another Service now, in an older version than this list. That it is
			// not of these is said by their listed.
			delete(l.tombstones, id{g.kind, k})
		}
	}
	l.cluster = l.cluster.With(news...)
	for _, s := range g.scopes {
		l.listed[s] = version
		l.reach(s)
		l.settle(s)
	}
}

// resume notes that a watch begins of what others have told of, of each scope up to a
// version. It may tell some of that again: what was deleted before does not come back.
func (l *ledger) resume(told map[scope]string) {
	for s, version := range told {
		if floor, listed := l.listed[s]; listed && newer(version, floor) {
			l.listed[s] = version
		}
	}
}

// fault replaces the problems that one reporter has; none clears them.
func (l *ledger) fault(reporter string, problems []snapshot.Problem) {
	if slices.Equal(l.faults[reporter], problems) {
		return
	}
	l.faults[reporter] = problems
	if len(problems) == 0 {
		delete(l.faults, reporter)
	}
	all := slices.Concat(slices.Collect(maps.Values(l.faults))...)
	slices.SortFunc(all, snapshot.Problem.Compare)
	l.cluster = l.cluster.WithFaults(all)
}

// sweep deletes old tombstones.
func (l *ledger) sweep() {
	now := l.now()
	if now.Sub(l.swept) < tombstoneTime {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.tombstones, func(_ id, t tombstone) bool { return now.Sub(t.since) > tombstoneTime })
}

// newer reports whether version a is later than b. A server whose versions are
// not ordered numbers is believed in the order in which it speaks.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return a != b
	}
	return order > 0
}
