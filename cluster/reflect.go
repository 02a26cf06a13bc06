package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"quayside.io/cluster/snapshot"
)

// reflect keeps one scope in the ledger the same as in the server.
func (a *API) reflect(ctx context.Context, s scope) {
	r := a.resources[s.kind]
	link := &link{api: a, scope: s}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := r.NewList()
			err := link.ask(ctx, 0, func() error {
				return a.narrow(a.on(r).Get(), s, r, &o).Do(ctx).Into(list)
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
			o.Watch = true
			err = link.ask(ctx, lifeOf(o), func() error {
				w, err = a.narrow(a.on(r).Get(), s, r, &o).Watch(ctx)
				if isStillborn(w) {
					w, err = nil, fmt.Errorf("watch %s: %w", r.Name, io.ErrUnexpectedEOF)
				}
				return err
			})
			return w, err
		},
	}
	cache.NewReflectorWithOptions(lw, r.New(), &feed{a.Source, s}, cache.ReflectorOptions{
		Name:  s.kind.String(),
		Clock: impatientClock{clock.RealClock{}, ctx},
		// Back soon after an outage; the gate keeps a thousand speakers apart.
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second},
	}).RunWithContext(ctx)
}

// link is what one reflector has of the server.
type link struct {
	api   *API
	scope scope
	// broken says that the last request failed, until, when the watch is to end that runs.
	broken bool
	until  time.Time
}

// ask sends a request once the gate lets it through, and tells what came of it. It is
// for a watch that lasts as long as that, or for a list.
func (l *link) ask(ctx context.Context, lasts time.Duration, send func() error) error {
	const early = time.Second // a watch may end so, and nothing is wrong
	t, err := l.api.gate.enter(ctx, l.scope.kind, l.broken || time.Until(l.until) > early)
	if err != nil {
		return err
	}
	err = send()
	l.api.gate.leave(ctx, t, err)
	l.api.contact.heard(ctx, l.scope, err)
	l.broken, l.until = err != nil, time.Time{}
	if lasts > 0 && err == nil {
		l.until = time.Now().Add(lasts)
	}
	return err
}

// lifeOf is how long a watch lasts that is asked for.
func lifeOf(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*o.TimeoutSeconds) * time.Second
}

// isStillborn reports whether w is what client-go returns, without an error,
// where the connection ended before an answer.
func isStillborn(w watch.Interface) bool {
	return w != nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch())
}

// unpack takes a list apart.
func unpack(list runtime.Object) (objects []snapshot.Object, version string, err error) {
	head, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	err = meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		if o, ok := item.(snapshot.Object); ok {
			objects = append(objects, strip(o))
		}
		return nil
	})
	return objects, head.GetResourceVersion(), err
}

// narrow addresses a list or watch of a scope, within what was asked for.
func (a *API) narrow(request *rest.Request, s scope, r snapshot.Resource, o *metav1.ListOptions) *rest.Request {
	namespace, name := cmp.Or(s.namespace, a.opts.WatchNamespace), s.name
	if s.kind == snapshot.SpeakerStatus {
		name = cmp.Or(name, a.opts.SpeakerStatus)
	}
	switch {
	case name != "" && s.kind == snapshot.EndpointSlice:
		o.LabelSelector = labels.Set{discoveryv1.LabelServiceName: name}.String()
	case name != "":
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	case s.kind == snapshot.Secret: // a megabyte each, and no Ingress refers to them
		o.FieldSelector = fields.OneTermNotEqualSelector("type", "helm.sh/release.v1").String()
	}
	// client-go would send it ten times more, once a second, past the gate.
	request = request.Resource(r.Name).VersionedParams(o, a.clients.parameters).MaxRetries(0)
	if r.Namespaced && namespace != "" {
		request = request.Namespace(namespace)
	}
	if life := lifeOf(*o); life > 0 {
		request = request.Timeout(life)
	}
	return request
}

// feed passes what a reflector hears on to the loop. It is the reflector's
// store, without storing anything a second time.
type feed struct {
	source *Source
	scope  scope
}

var _ cache.TransformingStore = (*feed)(nil)

// Add implements cache.ReflectorStore.
func (f *feed) Add(obj any) error {
	if o, ok := obj.(snapshot.Object); ok {
		strip(o)
		f.source.note(f.scope.kind == snapshot.EndpointSlice, func(l *ledger) { l.put(o) })
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (f *feed) Update(obj any) error { return f.Add(obj) }

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(obj any) error {
	if o, ok := obj.(snapshot.Object); ok {
		f.source.note(f.scope.kind == snapshot.EndpointSlice, func(l *ledger) {
			key := snapshot.KeyOf(o)
			if have, ok := l.cluster.Get(f.scope.kind, key); ok && !f.scope.covers(placeOf(have)) {
				return // it has only left this scope
			}
			l.remove(f.scope.kind, key, o.GetResourceVersion())
		})
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *feed) Replace(list []any, version string) error {
	objects := make([]snapshot.Object, 0, len(list))
	for _, obj := range list {
		if o, ok := obj.(snapshot.Object); ok {
			objects = append(objects, strip(o))
		}
	}
	f.source.note(true, func(l *ledger) { l.replace(f.scope, objects, version) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *feed) Resync() error { return nil }

// Transformer implements cache.TransformingStore: a reflector that streams its
// first list keeps it for a while.
func (f *feed) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(snapshot.Object); ok {
			return strip(o), nil
		}
		return obj, nil
	}
}

// impatientClock ends a wait when ctx ends. The reflector sleeps through its
// back-off otherwise, and would hold up the end of the process.
type impatientClock struct {
	clock.RealClock
	ctx context.Context
}

// After implements clock.Clock.
func (c impatientClock) After(d time.Duration) <-chan time.Time {
	woken := make(chan time.Time, 1)
	ring := func() {
		select {
		case woken <- time.Now():
		default:
		}
	}
	forget := context.AfterFunc(c.ctx, ring)
	time.AfterFunc(d, func() { forget(); ring() })
	return woken
}
