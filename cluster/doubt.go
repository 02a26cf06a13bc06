package cluster

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// clearDoubts asks the server about writes without an answer, once they can no
// longer take effect: the server itself drops a request after WriteDeadline. It asks
// once about each object, when it is its turn: a fleet has its doubts at the same time.
func (a *API) clearDoubts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.doubt:
		}
		for a.hasDoubts() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			for _, at := range a.oldDoubts() {
				a.ask(ctx, at)
			}
		}
	}
}

func (a *API) hasDoubts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endDoubtsLocked()
	return len(a.doubts) > 0
}

// endDoubtsLocked drops doubts that have ended: a doubt lasts until a version other than the
// one it was to replace is seen: ours, or one that ours can no longer replace.
func (a *API) endDoubtsLocked() {
	c := a.Snapshot()
	a.doubts = slices.DeleteFunc(a.doubts, func(d doubt) bool {
		have, ok := c.Get(d.at.kind, d.at.key)
		return !ok || have.GetResourceVersion() != d.base
	})
}

// isOldAt reports whether the write can no longer take effect.
func (d *doubt) isOldAt(t time.Time) bool { return t.Sub(d.since) > 2*WriteDeadline }

// hasYoungDoubts reports whether a write without an answer may still take effect.
func (a *API) hasYoungDoubts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endDoubtsLocked()
	return slices.ContainsFunc(a.doubts, func(d doubt) bool { return !d.isOldAt(time.Now()) })
}

// oldDoubts are the objects that have had old doubts, each once.
func (a *API) oldDoubts() []id {
	a.mu.Lock()
	defer a.mu.Unlock()
	var old []id
	for _, d := range a.doubts {
		if d.isOldAt(time.Now()) && !slices.Contains(old, d.at) {
			old = append(old, d.at)
		}
	}
	return old
}

// ask reads the object from the server and so ends its old doubts, if it answers.
func (a *API) ask(ctx context.Context, at id) {
	t, err := a.gate.enter(ctx, at.kind, true)
	if err != nil {
		return
	}
	r := a.resources[at.kind]
	bounded, cancel := deadline(ctx)
	defer cancel()
	answer := r.New()
	asked := time.Now()
	err = a.on(r).Get().NamespaceIfScoped(at.key.Namespace, r.Namespaced).Resource(r.Name).Name(at.key.Name).MaxRetries(0).Do(bounded).Into(answer)
	a.gate.leave(ctx, t, err)
	switch {
	case apierrors.IsNotFound(err): // the watch will say so too
	case err != nil:
		return
	default:
		strip(answer)
		if a.tell(ctx, func(l *ledger) { l.put(answer) }) != nil {
			return
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.doubts = slices.DeleteFunc(a.doubts, func(d doubt) bool { return d.at == at && d.isOldAt(asked) })
}
