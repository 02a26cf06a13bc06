package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// UpdateStatus implements Writer. It sends a merge patch against the version
// that obj was computed from, so that fields of others, and what strip took
// away, stay as they are.
func (a *API) UpdateStatus(ctx context.Context, obj snapshot.Object) error {
	kind, ok := snapshot.KindOf(obj)
	switch kind {
	case snapshot.Service, snapshot.Ingress, snapshot.IPAddressPool, snapshot.SpeakerStatus:
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("write status of %s: Quayside does not write this kind", snapshot.RefOf(obj))
	}
	at := id{kind, snapshot.KeyOf(obj)}
	base, known := a.Snapshot().Get(kind, at.key)
	if _, isSpeaker := obj.(*v1alpha1.SpeakerStatus); !known && isSpeaker && obj.GetResourceVersion() == "" {
		made, err := a.create(ctx, at, obj)
		if err != nil {
			return err
		}
		base, known = made, true
		obj = obj.DeepCopyObject().(snapshot.Object)
		obj.SetResourceVersion(made.GetResourceVersion())
	}
	switch {
	case !known:
		return stale(obj, "it is gone")
	case base.GetResourceVersion() == recalledVersion:
		return stale(obj, "it is known from a former life only")
	case base.GetResourceVersion() != obj.GetResourceVersion():
		return stale(obj, "there is a newer version")
	}
	patch, err := statusPatch(base, obj)
	if err != nil || patch == nil {
		return err
	}
	return a.patch(ctx, at, obj, patch)
}

func (a *API) patch(ctx context.Context, at id, obj snapshot.Object, patch []byte) error {
	outcome, err := a.send(ctx, at, patch, "status")
	switch outcome {
	case "ok":
		return err
	case "stale":
		return stale(obj, err.Error())
	case "refused":
		if isFinal(err) {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
	case "unknown":
		a.mu.Lock()
		a.doubts = append(a.doubts, doubt{at, obj.GetResourceVersion(), obj, time.Now()})
		a.mu.Unlock()
		wake(a.doubt)
	}
	return fmt.Errorf("write status of %s: %w", snapshot.RefOf(obj), err)
}

// send sends a merge patch for an object, or for a part of it that is written apart.
// Once it is done, Snapshot shows the answer.
func (a *API) send(ctx context.Context, at id, patch []byte, part ...string) (outcome string, err error) {
	r := a.resources[at.kind]
	answer := r.New()
	leave, err := a.turn(ctx, at.kind)
	if err != nil {
		return "refused", err // it was not sent
	}
	bounded, cancel := deadline(a.lasting(ctx))
	defer cancel()
	err = a.on(r).Patch(types.MergePatchType).
		NamespaceIfScoped(at.key.Namespace, r.Namespaced).Resource(r.Name).Name(at.key.Name).SubResource(part...).
		Timeout(WriteDeadline).MaxRetries(a.retries()).Body(patch).Do(bounded).Into(answer)
	leave(err)
	outcome = outcomeOf(err)
	a.writes.WithLabelValues(at.kind.String(), outcome).Inc()
	if outcome == "ok" {
		strip(answer)
		err = a.tell(ctx, func(l *ledger) { l.put(answer) })
	}
	return outcome, err
}

// writeMoment is how long a write waits in any case.
const writeMoment = 10 * time.Millisecond

// turn waits until a write may be sent, and returns how to say what came of it. A process
// that each node has waits where its fleet does, see gate; any other writes at once, since
// it may have stopped to lead when its turn comes.
func (a *API) turn(ctx context.Context, kind snapshot.Kind) (leave func(error), err error) {
	if !a.opts.OnEveryNode {
		return func(error) {}, ctx.Err() // who leads no more begins nothing
	}
	// The watches of a process may break at the same time as it wants to write.
	sleep(ctx, writeMoment)
	t, err := a.gate.enter(ctx, kind, false)
	return func(err error) { a.gate.leave(ctx, t, err) }, err
}

// lasting is the context of a write that has its turn. That of who may lead does not end with
// ctx: the server may go on with a request whose client is gone, and the Lease would be
// released, so that the next leader wrote at the same time.
func (a *API) lasting(ctx context.Context) context.Context {
	if a.opts.OnEveryNode {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// retries is how often client-go sends a write once more that the server has no time for:
// never past the gate.
func (a *API) retries() int {
	if a.opts.OnEveryNode {
		return 0
	}
	return 10 // as it does by itself
}

// outcomeOf tells what has become of a write: "ok", "stale" (computed from an
// old version), "refused" (it did not happen) or "unknown" (it may have).
func outcomeOf(err error) string {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return "ok"
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return "stale"
	case utilnet.IsConnectionRefused(err):
		return "refused"
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500:
		return "refused"
	}
	return "unknown"
}

// isFinal reports whether a write was refused for what it is, and not because the
// server is away or busy.
func isFinal(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && !apierrors.IsTooManyRequests(err)
}

// create makes a SpeakerStatus; its status comes with the patch that follows.
func (a *API) create(ctx context.Context, at id, obj snapshot.Object) (snapshot.Object, error) {
	r := a.resources[at.kind]
	answer := r.New()
	leave, err := a.turn(ctx, at.kind)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", snapshot.RefOf(obj), err)
	}
	bounded, cancel := deadline(ctx)
	defer cancel()
	obj = obj.DeepCopyObject().(snapshot.Object)
	obj.SetOwnerReferences(a.firstOwners(ctx, obj.GetOwnerReferences()))
	err = a.on(r).Post().Resource(r.Name).Timeout(WriteDeadline).MaxRetries(a.retries()).Body(obj).Do(bounded).Into(answer)
	leave(err)
	if apierrors.IsAlreadyExists(err) {
		err = a.on(r).Get().Resource(r.Name).Name(at.key.Name).Do(bounded).Into(answer)
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", snapshot.RefOf(obj), err)
	}
	strip(answer)
	return answer, a.tell(ctx, func(l *ledger) { l.put(answer) })
}

// statusPatch returns the merge patch that turns base's status (and our
// annotations of a Service) into wanted's, or nil if there is no difference.
func statusPatch(base, wanted snapshot.Object) ([]byte, error) {
	from, err := asMap(statusOf(base))
	if err != nil {
		return nil, err
	}
	to, err := asMap(statusOf(wanted))
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if !reflect.DeepEqual(from, to) {
		patch["status"] = mergePatch(from, to)
	}
	meta := map[string]any{"resourceVersion": base.GetResourceVersion()}
	if kind, _ := snapshot.KindOf(base); kind == snapshot.Service {
		if from, to := ownAnnotations(base), ownAnnotations(wanted); !maps.Equal(from, to) {
			meta["annotations"] = mergePatch(from, to)
		}
	}
	if len(patch) == 0 && len(meta) == 1 {
		return nil, nil
	}
	patch["metadata"] = meta
	return json.Marshal(patch)
}

func ownAnnotations(o snapshot.Object) map[string]any {
	own := map[string]any{}
	for k, v := range o.GetAnnotations() {
		if isOwn(k) {
			own[k] = v
		}
	}
	return own
}

func asMap(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	// Numbers stay as they are written: as a float64 the largest int64 grows by one,
	// and the server refuses the whole status.
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	m := map[string]any{}
	return m, numbers.Decode(&m)
}

// mergePatch is a JSON merge patch (RFC 7386) that turns from into to. It
// repeats what is equal: from is as our types show it, and fields that they
// show as zero may be missing, though required, in the server's object.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for k, v := range to {
		old, wasMap := from[k].(map[string]any)
		if m, isMap := v.(map[string]any); isMap && wasMap {
			v = mergePatch(old, m)
		}
		patch[k] = v
	}
	for k := range from {
		if _, has := to[k]; !has {
			patch[k] = nil
		}
	}
	return patch
}

// Inflight implements Writer.
func (a *API) Inflight() []snapshot.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endDoubtsLocked()
	objects := make([]snapshot.Object, 0, len(a.doubts))
	for _, d := range a.doubts {
		objects = append(objects, d.wanted)
	}
	slices.SortFunc(objects, func(a, b snapshot.Object) int { return snapshot.KeyOf(a).Compare(snapshot.KeyOf(b)) })
	return objects
}
