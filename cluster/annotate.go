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
	patch, err := annotation(obj, name, value)
	if err != nil {
		return err
	}
	switch outcome, err := a.send(ctx, id{snapshot.Ingress, snapshot.KeyOf(obj)}, patch); outcome {
	case "ok":
		return err
	case "stale":
		return fmt.Errorf("annotate %s: %w (%w)", snapshot.RefOf(obj), ErrStale, err)
	default:
		return fmt.Errorf("annotate %s: %w", snapshot.RefOf(obj), err)
	}
}

// annotation is the merge patch for one annotation. The server refuses it for another
// object than this one.
func annotation(obj snapshot.Object, name, value string) ([]byte, error) {
	set := map[string]any{name: nil}
	if value != "" {
		set[name] = value
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(), "annotations": set}})
}
