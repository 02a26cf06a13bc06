package cluster

import (
	"context"
	"slices"
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
			for _, d := range a.oldDoubts() {
				a.ask(ctx, d)
			}
		}
	}
}

func (a *API) hasDoubts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.doubts) > 0
}

func (a *API) oldDoubts() []doubt {
	a.mu.Lock()
	defer a.mu.Unlock()
	var old []doubt
	for _, d := range a.doubts {
		if time.Since(d.since) > 2*WriteDeadline {
			old = append(old, d)
		}
	}
	return old
}

// ask reads the object from the server and so ends the doubt, if it answers.
func (a *API) ask(ctx context.Context, d doubt) {
	r := a.resources[d.at.kind]
	bounded, cancel := deadline(ctx)
	defer cancel()
	answer := r.New()
	err := a.on(r).Get().NamespaceIfScoped(d.at.key.Namespace, r.Namespaced).Resource(r.Name).Name(d.at.key.Name).Do(bounded).Into(answer)
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
	a.doubts = slices.DeleteFunc(a.doubts, func(o doubt) bool { return o.at == d.at && o.since.Equal(d.since) })
}
