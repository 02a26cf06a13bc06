package cluster

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/snapshot"
)

// scope is what one list and watch covers: a kind, of it one namespace, of that
// one place. What is empty is not narrowed.
type scope struct {
	kind            snapshot.Kind
	namespace, name string
}

// placeOf is by what scopes find an object: its own key or, of an EndpointSlice, the
// key of its Service. Names of slices are made up.
func placeOf(o snapshot.Object) snapshot.Key {
	k := snapshot.KeyOf(o)
	if s, ok := o.(*discoveryv1.EndpointSlice); ok {
		k.Name = s.Labels[discoveryv1.LabelServiceName]
	}
	return k
}

func (s scope) covers(k snapshot.Key) bool {
	return (s.namespace == "" || s.namespace == k.Namespace) && (s.name == "" || s.name == k.Name)
}

// narrowed reports whether s is less than all of its kind.
func (s scope) narrowed() bool { return s.namespace != "" || s.name != "" }

// scopesOf returns every scope that covers a place.
func scopesOf(kind snapshot.Kind, k snapshot.Key) []scope {
	return []scope{{kind: kind}, {kind, k.Namespace, ""}, {kind, k.Namespace, k.Name}}
}

// namesPerNamespace is how many objects of one namespace are watched by name, each by a
// watch of its own. With more of them one watch of the namespace costs the server less;
// with fewer, nothing is read that nobody asked for. EndpointSlices share watches by name.
const namesPerNamespace = 4

// scopesFor returns the scopes in which the objects at keys are seen: by name where
// there are few in a namespace, or byName says so. The empty key stands for all.
func scopesFor(kind snapshot.Kind, keys []snapshot.Key, byName func(snapshot.Kind, string) bool) map[scope]bool {
	names := map[string]map[string]bool{}
	for _, k := range keys {
		if names[k.Namespace] == nil {
			names[k.Namespace] = map[string]bool{}
		}
		names[k.Namespace][k.Name] = true
	}
	scopes := map[scope]bool{}
	for namespace, list := range names {
		if len(list) > namesPerNamespace && kind != snapshot.EndpointSlice && !byName(kind, namespace) {
			scopes[scope{kind, namespace, ""}] = true
			continue
		}
		for name := range list {
			scopes[scope{kind, namespace, name}] = true
		}
	}
	return scopes
}

// awaited is a caller that waits until every one of scopes has been seen.
type awaited struct {
	scopes map[scope]bool
	seen   chan struct{}
	due    bool // scopes are watched. Of the ledger's loop, once it is there
}

// settle says that s need not be waited for any more.
func (l *ledger) settle(s scope) {
	l.forget(s)
	if !s.narrowed() {
		delete(l.waiting, s.kind)
	}
	l.seen[s] = true
}

// reach notes that an object of s which is not in the snapshot does not exist.
func (l *ledger) reach(s scope) {
	l.cluster = l.cluster.WithReach(s.kind, snapshot.Key{Namespace: s.namespace, Name: s.name})
}

// await asks for a.seen to be closed once the snapshot shows all of a.scopes.
func (l *ledger) await(a *awaited) { l.awaited = append(l.awaited, a) }

// supersede has nobody wait for scopes of a kind that are not wanted any more: nothing will
// be heard of them.
func (l *ledger) supersede(kind snapshot.Kind, wanted map[scope]bool) {
	l.release(kind, wanted)
	for _, a := range l.awaited {
		for s := range a.scopes {
			if s.kind != kind || wanted[s] {
				continue
			}
			delete(a.scopes, s)
			for _, wider := range scopesOf(kind, snapshot.Key{Namespace: s.namespace, Name: s.name}) {
				if wanted[wider] {
					a.scopes[wider] = true
				}
			}
		}
	}
}

// met takes out and returns who need not wait any longer.
func (l *ledger) met() (all []*awaited) {
	l.awaited = slices.DeleteFunc(l.awaited, func(a *awaited) bool {
		if !a.due {
			return false
		}
		maps.DeleteFunc(a.scopes, func(s scope, _ bool) bool { return l.seen[s] || l.alone })
		if len(a.scopes) == 0 {
			all = append(all, a)
		}
		return len(a.scopes) == 0
	})
	return all
}

// drop forgets scopes that are no longer watched, and their objects but for those
// whose place keep covers. They were not deleted, so no tombstone is left.
func (l *ledger) drop(g *group, keep func(snapshot.Key) bool) {
	for _, s := range g.scopes {
		delete(l.listed, s)
		delete(l.seen, s)
		delete(l.recalled, s)
		l.cluster = l.cluster.WithoutReach(s.kind, snapshot.Key{Namespace: s.namespace, Name: s.name})
	}
	var gone []snapshot.Key
	for o := range l.cluster.Objects(g.kind) {
		if at := placeOf(o); g.covers(at) && !keep(at) {
			gone = append(gone, snapshot.KeyOf(o))
		}
	}
	for _, k := range gone {
		l.cluster = l.cluster.Without(g.kind, k)
	}
}
