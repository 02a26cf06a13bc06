package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

func secret(namespace, name, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version}}
}

func TestScopesAreNamesOrNamespaces(t *testing.T) {
	var keys []snapshot.Key
	for i := range namesPerNamespace {
		keys = append(keys, snapshot.Key{Namespace: "few", Name: fmt.Sprint("s", i)}, snapshot.Key{Namespace: "many", Name: fmt.Sprint("s", i)})
	}
	keys = append(keys, keys[0], snapshot.Key{Namespace: "many", Name: "one-more"})
	got := scopesFor(snapshot.Secret, keys, func(snapshot.Kind, string) bool { return false })
	want := map[scope]bool{{snapshot.Secret, "many", ""}: true}
	for i := range namesPerNamespace {
		want[scope{snapshot.Secret, "few", fmt.Sprint("s", i)}] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("scopes %v, want %v", got, want)
	}
	for _, k := range keys {
		if !slices.ContainsFunc(scopesOf(snapshot.Secret, k), func(s scope) bool { return got[s] }) {
			t.Errorf("%s is not covered", k)
		}
	}
}

// takeTurn does what watchReferenced does, but for the watches.
func takeTurn(s *Source) {
	_, waiting := s.references.turn()
	s.answer(waiting)
	s.enter(s.inbox.take())
}

// Who refers is answered when every scope has been listed, or is known to be
// unreadable, and not before the snapshot shows it.
func TestReferWaitsUntilAllIsSeen(t *testing.T) {
	s := newSource(nil)
	s.references = newReferences([]snapshot.Kind{snapshot.Secret})
	seen := s.Refer(snapshot.Secret, []snapshot.Key{{Namespace: "a", Name: "tls"}, {Namespace: "b", Name: "tls"}})
	takeTurn(s)
	a, b := scope{snapshot.Secret, "a", "tls"}, scope{snapshot.Secret, "b", "tls"}
	s.note(true, func(l *ledger) { l.replace(groupOf(a), []snapshot.Object{secret("a", "tls", "5")}, "6") })
	s.enter(s.inbox.take())
	if IsClosed(seen) {
		t.Fatal("seen before the second was listed")
	}
	s.note(true, func(l *ledger) { l.settle(b) })
	s.enter(s.inbox.take())
	if !IsClosed(seen) || s.Snapshot().Secrets.Len() != 1 {
		t.Fatalf("all was listed or forbidden: seen %v, %d Secrets", IsClosed(seen), s.Snapshot().Secrets.Len())
	}
	again := s.Refer(snapshot.Secret, []snapshot.Key{{Namespace: "a", Name: "tls"}})
	s.enter(s.inbox.take())
	if !IsClosed(again) {
		t.Error("what has been seen is waited for again")
	}
	// Nobody names b any more. It is dropped; who names it again meanwhile waits for it.
	takeTurn(s)
	both := s.Refer(snapshot.Secret, []snapshot.Key{{Namespace: "a", Name: "tls"}, {Namespace: "b", Name: "tls"}})
	s.enter(s.inbox.take())
	s.note(false, func(l *ledger) { l.drop(groupOf(b), func(snapshot.Key) bool { return false }) })
	takeTurn(s)
	if IsClosed(both) {
		t.Error("seen though it was to be dropped")
	}
	s.note(true, func(l *ledger) { l.settle(b) })
	s.enter(s.inbox.take())
	if !IsClosed(both) {
		t.Error("it is there again and waited for")
	}
	// Who is superseded before its turn waits for nothing that nobody watches.
	takeTurn(s)
	of := func(names ...string) <-chan struct{} {
		var keys []snapshot.Key
		for _, name := range names {
			keys = append(keys, snapshot.Key{Namespace: "c", Name: name})
		}
		return s.Refer(snapshot.Secret, keys)
	}
	past := s.Refer(snapshot.Secret, []snapshot.Key{{Namespace: "d", Name: "x"}})
	wide := of("1", "2", "3", "4", "5")
	takeTurn(s)
	if IsClosed(wide) || !IsClosed(past) {
		t.Errorf("who is superseded is answered: %v; who is not, before anything is known: %v", IsClosed(past), IsClosed(wide))
	}
	few := of("1")
	takeTurn(s)
	s.note(true, func(l *ledger) { l.settle(scope{snapshot.Secret, "c", "1"}) })
	s.enter(s.inbox.take())
	if !IsClosed(few) || !IsClosed(wide) || len(s.ledger.awaited) > 0 {
		t.Errorf("answered: %v and %v; %d wait", IsClosed(few), IsClosed(wide), len(s.ledger.awaited))
	}
	if none := s.Refer(snapshot.ConfigMap, []snapshot.Key{{Name: "x"}}); !IsClosed(none) {
		t.Error("a kind that is watched as a whole is waited for")
	}
}

// A list of one scope says nothing about objects outside it, and dropping a
// scope takes away only what no other covers.
func TestScopesDoNotSpeakForEachOther(t *testing.T) {
	l := newLedger(nil)
	byName, byNamespace := scope{snapshot.Secret, "a", "x"}, scope{snapshot.Secret, "b", ""}
	l.replace(groupOf(byName), []snapshot.Object{secret("a", "x", "3")}, "10")
	l.replace(groupOf(byNamespace), []snapshot.Object{secret("b", "y", "4"), secret("b", "z", "4")}, "11")
	if n := l.cluster.Secrets.Len(); n != 3 {
		t.Fatalf("%d Secrets, want 3", n)
	}
	l.put(secret("a", "later", "2")) // older than the list of another name
	if _, ok := l.cluster.Secrets.Get(snapshot.Key{Namespace: "a", Name: "later"}); !ok {
		t.Error("the list of one name counts as the deletion of another")
	}
	l.put(secret("b", "gone", "2"))
	if _, ok := l.cluster.Secrets.Get(snapshot.Key{Namespace: "b", Name: "gone"}); ok {
		t.Error("an answer from before the list resurrects what it lacks")
	}
	l.drop(groupOf(byNamespace), func(k snapshot.Key) bool { return k.Name == "z" })
	l.put(secret("b", "y", "4"))
	if _, ok := l.cluster.Secrets.Get(snapshot.Key{Namespace: "b", Name: "z"}); !ok {
		t.Error("what another scope covers was dropped")
	}
	if _, ok := l.cluster.Secrets.Get(snapshot.Key{Namespace: "b", Name: "y"}); !ok {
		t.Error("a dropped object is taken for a deleted one")
	}
}

// The slices of a Service are one scope, whatever their names; one that its label moves
// to another Service is there, in whichever order the two watches tell of it.
func TestSlicesAreFoundByTheirService(t *testing.T) {
	a, b := scope{snapshot.EndpointSlice, "ns", "a"}, scope{snapshot.EndpointSlice, "ns", "b"}
	slice := func(name, service, version string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, ResourceVersion: version, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		}}
	}
	of := func(s *Source, service string) (names []string) {
		s.enter(s.inbox.take())
		for _, e := range s.Snapshot().SlicesOf(snapshot.Key{Namespace: "ns", Name: service}) {
			names = append(names, e.Name)
		}
		return names
	}
	for _, added := range []bool{true, false} {
		s := newSource(nil)
		inA, inB := newFeed(s, groupOf(a), nil), newFeed(s, groupOf(b), nil)
		s.note(true, func(l *ledger) {
			l.replace(groupOf(a), []snapshot.Object{slice("x1", "a", "5"), slice("x2", "a", "6")}, "7")
			l.replace(groupOf(b), []snapshot.Object{slice("y1", "b", "5")}, "7")
		})
		s.note(true, func(l *ledger) { l.replace(groupOf(a), []snapshot.Object{slice("x1", "a", "5")}, "8") })
		if gotA, gotB := of(s, "a"), of(s, "b"); !slices.Equal(gotA, []string{"x1"}) || !slices.Equal(gotB, []string{"y1"}) {
			t.Fatalf("a has %v, b %v", gotA, gotB)
		}
		events := []func() error{
			func() error { return inB.Add(slice("x1", "b", "9")) },
			func() error { return inA.Delete(slice("x1", "a", "9")) },
		}
		if !added {
			slices.Reverse(events)
		}
		for _, e := range events {
			if err := e(); err != nil {
				t.Fatal(err)
			}
		}
		if gotA, gotB := of(s, "a"), of(s, "b"); len(gotA) != 0 || !slices.Equal(gotB, []string{"x1", "y1"}) {
			t.Errorf("added first %v: a has %v, b %v", added, gotA, gotB)
		}
		s.note(true, func(l *ledger) { l.drop(groupOf(b), func(snapshot.Key) bool { return false }) })
		if gotB := of(s, "b"); len(gotB) != 0 {
			t.Errorf("b is not watched, and has %v", gotB)
		}
	}
}

// A list that lacks a slice, since its label has moved it to another Service meanwhile, says
// nothing of that one, which is referred to later.
func TestASliceIsFoundWhereItHasMoved(t *testing.T) {
	l := newLedger(nil)
	slice := func(service, version string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "x", ResourceVersion: version, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		}}
	}
	a, b := groupOf(endpointsOf("ns", "a")), groupOf(endpointsOf("ns", "b"))
	l.replace(a, []snapshot.Object{slice("a", "5")}, "6")
	l.replace(a, nil, "9") // it was moved at 8
	l.replace(b, []snapshot.Object{slice("b", "8")}, "10")
	if _, ok := l.cluster.EndpointSlices.Get(snapshot.Key{Namespace: "ns", Name: "x"}); !ok {
		t.Error("it counts as deleted")
	}
	l.put(slice("a", "5"))
	if n := len(l.cluster.SlicesOf(snapshot.Key{Namespace: "ns", Name: "a"})); n != 0 {
		t.Error("what was before the move comes back")
	}
}

// The empty key is all of a kind.
func TestAllOfAKindMayBeReferredTo(t *testing.T) {
	got := scopesFor(snapshot.Node, []snapshot.Key{{}}, func(snapshot.Kind, string) bool { return false })
	if want := (map[scope]bool{{kind: snapshot.Node}: true}); !maps.Equal(got, want) {
		t.Errorf("scopes %v, want %v", got, want)
	}
}
