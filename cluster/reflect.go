package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
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

// reflect keeps the scopes of one group in the ledger the same as in the server.
func (a *API) reflect(ctx context.Context, f *feed) {
	r := a.resources[f.group.kind]
	link := &link{api: a, group: f.group}
	f.stream.endless = &a.endless
	var lw cache.ListerWatcher = &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return f.list(&o, r, func(of *group, into runtime.Object) error {
				return link.ask(ctx, 0, func() error {
					return a.narrow(a.on(r).Get(), of, r, &o).Do(ctx).Into(into)
				})
			})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
			if streams(&o) {
				if err := f.stream.mayBegin(); err != nil {
					link.until = time.Time{} // it was us who ended the last
					a.log.Info("asking for a list instead of a stream", "kind", r.Name, "reason", err)
					return nil, err
				}
			}
			o.Watch = true
			err = link.ask(ctx, lifeOf(o), func() error {
				w, err = a.narrow(a.on(r).Get(), f.group, r, &o).Watch(ctx)
				if isStillborn(w) {
					w, err = nil, fmt.Errorf("watch %s: %w", r.Name, io.ErrUnexpectedEOF)
				}
				return err
			})
			if streams(&o) && err == nil {
				f.stream.began(w)
			}
			return w, err
		},
	}
	if f.resumes {
		lw = withoutStream{lw.(*cache.ListWatch)}
	}
	cache.NewReflectorWithOptions(lw, r.New(), f, cache.ReflectorOptions{
		Name:  f.group.kind.String(),
		Clock: impatientClock{clock.RealClock{}, ctx},
		// Back soon after an outage; the gate keeps a thousand speakers apart.
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second},
	}).RunWithContext(ctx)
}

// early is by how much a watch may end before its time, and nothing is wrong.
const early = time.Second

// link is what one reflector has of the server.
type link struct {
	api   *API
	group *group
	// broken says that the last request failed, until, when the watch is to end that runs.
	broken bool
	until  time.Time
	// watched says that a watch has begun, ever.
	watched bool
}

// ask sends a request once the gate lets it through, and tells what came of it. It is
// for a watch that lasts as long as that, or for a list.
func (l *link) ask(ctx context.Context, lasts time.Duration, send func() error) error {
	if !l.watched && !l.broken {
		if err := l.api.start.pass(ctx); err != nil {
			return err
		}
	}
	t, err := l.api.gate.enter(ctx, l.group.kind, l.broken || time.Until(l.until) > early)
	if err != nil {
		return err
	}
	err = send()
	l.api.gate.leave(ctx, t, err)
	l.api.contact.heard(ctx, l.group, err)
	l.broken, l.until = err != nil, time.Time{}
	if lasts > 0 && err == nil {
		l.watched, l.until = true, time.Now().Add(lasts)
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

// narrow addresses a list or watch of a group, within what was asked for.
func (a *API) narrow(request *rest.Request, g *group, r snapshot.Resource, o *metav1.ListOptions) *rest.Request {
	namespace, names := cmp.Or(g.namespace, a.opts.WatchNamespace), g.names()
	if g.kind == snapshot.SpeakerStatus && len(names) == 0 && a.opts.SpeakerStatus != "" {
		names = []string{a.opts.SpeakerStatus}
	}
	switch {
	case len(names) > 0 && g.kind == snapshot.EndpointSlice:
		o.LabelSelector = ofServices(names)
	case len(names) > 0:
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, names[0]).String()
	case g.kind == snapshot.Secret: // a megabyte each, and no Ingress refers to them
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

// ofServices selects the EndpointSlices of Services.
func ofServices(names []string) string {
	if len(names) == 1 {
		return labels.Set{discoveryv1.LabelServiceName: names[0]}.String()
	}
	return discoveryv1.LabelServiceName + " in (" + strings.Join(names, ",") + ")"
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
