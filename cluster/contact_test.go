package cluster

import (
	"log/slog"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/cluster/snapshot"
)

// A kind that may not be read holds up who needs it, and nobody else: an
// upgrade to a version that reads one more must not wait for somebody who
// keeps the roles by hand. Either way it is told.
func TestOptionalKindsAreNotWaitedFor(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "quayside.io", Resource: "speakerstatuses"}, "", nil)
	for name, optional := range map[string][]snapshot.Kind{"needed": nil, "optional": {snapshot.SpeakerStatus}} {
		s := newSource([]snapshot.Kind{snapshot.SpeakerStatus})
		c := newContact(s, APIOptions{Log: slog.New(slog.DiscardHandler), Optional: optional}, "server", resources())
		c.heard(t.Context(), groupOf(scope{kind: snapshot.SpeakerStatus}), forbidden)
		s.enter(s.inbox.take())
		synced := IsClosed(s.Synced())
		if faults := s.Snapshot().Faults; synced != (optional != nil) || len(faults) != 1 || faults[0].Reason != Forbidden {
			t.Errorf("%s: synced %v, faults %v", name, synced, faults)
		}
	}
}
