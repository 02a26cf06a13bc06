package cluster

import (
	"log/slog"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/cluster/snapshot"
)

// Forbidden is never "does not exist": who refers is answered, and the snapshot
// says that nothing is known of the Secret, until a list has said more.
func TestForbiddenIsUnreadAndHoldsUpNobody(t *testing.T) {
	s := newSource(nil)
	s.references = newReferences([]snapshot.Kind{snapshot.Secret})
	c := newContact(s, APIOptions{Log: slog.New(slog.DiscardHandler)}, "host", resources())
	closed, open := snapshot.Key{Namespace: "closed", Name: "tls"}, snapshot.Key{Namespace: "open", Name: "tls"}
	seen := s.Refer(snapshot.Secret, []snapshot.Key{closed, open})
	takeTurn(s)
	at := func(k snapshot.Key) scope { return scope{snapshot.Secret, k.Namespace, k.Name} }
	covers := func(k snapshot.Key) bool {
		s.enter(s.inbox.take())
		return s.Snapshot().Reach(snapshot.Secret).Covers(k)
	}
	c.heard(t.Context(), groupOf(at(closed)), apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "tls", nil))
	s.note(true, func(l *ledger) { l.replace(groupOf(at(open)), nil, "6") })
	if covers(closed) || !covers(open) {
		t.Errorf("known of the forbidden one %v, of the empty one %v", covers(closed), covers(open))
	}
	if !IsClosed(seen) {
		t.Error("the forbidden one holds up the other")
	}
	if len(s.Snapshot().Faults) != 1 {
		t.Errorf("faults %v", s.Snapshot().Faults)
	}
	c.heard(t.Context(), groupOf(at(closed)), nil)
	s.note(true, func(l *ledger) { l.replace(groupOf(at(closed)), nil, "7") })
	if !covers(closed) || len(s.Snapshot().Faults) != 0 {
		t.Errorf("it was listed: known %v, faults %v", covers(closed), s.Snapshot().Faults)
	}
	s.note(true, func(l *ledger) { l.drop(groupOf(at(closed)), func(snapshot.Key) bool { return false }) })
	if covers(closed) {
		t.Error("nobody reads it any more, yet it counts as missing")
	}
}

func TestByNameWatchesNoNamespace(t *testing.T) {
	var keys []snapshot.Key
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		keys = append(keys, snapshot.Key{Namespace: "many", Name: name})
	}
	api, err := NewAPI(APIOptions{Kubeconfig: kubeconfigOf(t, "http://127.0.0.1:1"), Kinds: []snapshot.Kind{snapshot.Secret}, Referenced: []snapshot.Kind{snapshot.Secret}, ByName: func(snapshot.Kind, string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	api.Refer(snapshot.Secret, keys)
	wanted, _ := api.references.turn()
	for s := range wanted {
		if s.name == "" {
			t.Errorf("%v is more than was named", s)
		}
	}
	if n := len(wanted); n != len(keys) {
		t.Errorf("%d scopes", n)
	}
}
