package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"quayside.io/cluster/snapshot"
)

// Annotate sets one annotation of an Ingress, or takes it away where value is empty. It
// touches nothing else, and so conflicts with no other writer of the object; an Ingress that
// has been made anew under its name is left alone, which is ErrStale. When it returns
// nil, Snapshot shows the outcome.
func (a *API) Annotate(ctx context.Context, obj snapshot.Object, name, value string) error {
	if kind, _ := snapshot.KindOf(obj); kind != snapshot.Ingress {
		return fmt.Errorf("annotate %s: Quayside does not annotate this kind", snapshot.RefOf(obj))
	}
	set := map[string]any{name: nil}
	if value != "" {
		set[name] = value
	}
	// The server refuses the patch for another object than this one.
	return a.amend(ctx, "annotate", obj, map[string]any{"uid": obj.GetUID(), "annotations": set})
}

// amend patches the metadata of an object; what begins the text of its error. Another
// object or version than metadata names is ErrStale.
func (a *API) amend(ctx context.Context, what string, obj snapshot.Object, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	kind, _ := snapshot.KindOf(obj)
	switch outcome, err := a.send(ctx, id{kind, snapshot.KeyOf(obj)}, patch); outcome {
	case "ok":
		return err
	case "stale":
		return fmt.Errorf("%s %s: %w (%w)", what, snapshot.RefOf(obj), ErrStale, err)
	default:
		return fmt.Errorf("%s %s: %w", what, snapshot.RefOf(obj), err)
	}
}
