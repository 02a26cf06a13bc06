package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// clearDoubts asks the server about writes without an answer, once they can no
// longer take effect: the server itself drops a request after WriteDeadline.
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
			for at, d := range a.oldDoubts() {
				a.ask(ctx, at, d)
			}
		}
	}
}

func (a *API) hasDoubts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.doubts) > 0
}

func (a *API) oldDoubts() map[id]doubt {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := map[id]doubt{}
	for at, d := range a.doubts {
		if time.Since(d.since) > 2*WriteDeadline {
			old[at] = d
		}
	}
	return old
}

// ask reads the object from the server and so ends the doubt, if it answers.
func (a *API) ask(ctx context.Context, at id, d doubt) {
	r := a.resources[at.kind]
	bounded, cancel := deadline(ctx)
	defer cancel()
	answer := r.object()
	err := a.on(r).Get().NamespaceIfScoped(at.key.Namespace, r.namespaced).Resource(r.name).Name(at.key.Name).Do(bounded).Into(answer)
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
	if a.doubts[at].since.Equal(d.since) {
		delete(a.doubts, at)
	}
}
