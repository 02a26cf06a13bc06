package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"quayside.io/cluster/printable"
	"quayside.io/cluster/snapshot"
)

const (
	eventQueue   = 1024             // beyond it events are dropped, never waited for
	eventsPerSec = 10               // to the server, after a burst of…
	eventBurst   = 100              //
	repeatAfter  = 10 * time.Minute // the same event about the same object
	nameLength   = 230              // of the object, within the name of its Event
	action       = "Reconcile"      // the server wants to know what was being done
)

// NoteLength is how many bytes of an Event's text the server takes; a Writer cuts
// the rest off.
const NoteLength = 1024

// news is an event on its way.
type news struct {
	about                 snapshot.Ref
	eventType             string
	reason, message, name string
	at                    time.Time
}

// eventWriter sends Events from one goroutine: a bounded queue before it, a
// memory of what was said lately, and a limit on the rate.
type eventWriter struct {
	api     *API
	queue   *turns
	dropped prometheus.Counter
}

func newEventWriter(a *API) *eventWriter {
	return &eventWriter{
		api:   a,
		queue: newTurns(eventQueue),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quayside_api_events_dropped_total", Help: "Events that were not sent because too many waited: those about who had the most.",
		}),
	}
}

// Event implements Writer.
func (a *API) Event(about snapshot.Ref, eventType, reason, message string) {
	if !a.events.queue.add(news{about: about, eventType: eventType, reason: reason, message: message, at: time.Now()}) {
		a.events.dropped.Inc()
	}
}

func (w *eventWriter) run(ctx context.Context) {
	limit := flowcontrol.NewTokenBucketRateLimiter(eventsPerSec, eventBurst)
	said := lately{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.queue.ready:
		}
		for n, ok := w.queue.next(); ok && ctx.Err() == nil; n, ok = w.queue.next() {
			if said.already(n) || limit.Wait(ctx) != nil {
				continue
			}
			err := w.send(ctx, n)
			if !isAnswer(err) {
				said.forget(n)
			}
			if isGone(err) {
				w.queue.forget(n.about.Namespace)
			}
			if err != nil && ctx.Err() == nil {
				w.api.log.Debug("event not sent", "about", n.about.String(), "reason", n.reason, "error", err)
			}
		}
	}
}

// isGone reports whether the server takes nothing in a namespace, since it does not exist any
// more or is about to end.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// lately remembers what was said, without the time and name of it.
type lately map[news]time.Time

// key is what makes two news the same.
func (n news) key() news {
	n.at, n.name = time.Time{}, ""
	return n
}

// forget takes back that n was said: nobody has heard it.
func (l lately) forget(n news) { delete(l, n.key()) }

func (l lately) already(n news) bool {
	now := n.at
	n = n.key()
	if last, ok := l[n]; ok && now.Sub(last) < repeatAfter {
		return true
	}
	if len(l) >= eventQueue {
		for old, last := range l {
			if now.Sub(last) >= repeatAfter {
				delete(l, old)
			}
		}
		if len(l) >= eventQueue {
			clear(l) // better to say something twice than to remember without end
		}
	}
	l[n] = now
	return false
}

// send posts an Event beside the object it is about.
func (w *eventWriter) send(ctx context.Context, n news) error {
	regarding := w.reference(n.about)
	namespace := regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      eventName(n),
			Namespace: namespace,
		},
		EventTime:           metav1.NewMicroTime(n.at),
		ReportingController: "quayside.io/" + w.api.opts.Component,
		ReportingInstance:   w.api.opts.Instance,
		Action:              action,
		Reason:              n.reason,
		Regarding:           regarding,
		Note:                printable.Cut(n.message, NoteLength),
		Type:                n.eventType,
	}
	bounded, cancel := deadline(ctx)
	defer cancel()
	return w.api.clients.byGroup[eventsv1.SchemeGroupVersion].Post().
		Namespace(namespace).Resource("events").Body(event).Do(bounded).Error()
}

// eventName is that of an Event: its object's, as far as there is room, and when.
func eventName(n news) string {
	name := n.about.Name[:min(len(n.about.Name), nameLength)]
	return fmt.Sprintf("%s.%x", strings.TrimRight(name, "-."), n.at.UnixNano()) // no part of a name ends so
}

// reference is about in the server's words; kinds that are not the server's
// (a file, the server itself) are named as they are.
func (w *eventWriter) reference(about snapshot.Ref) corev1.ObjectReference {
	ref := corev1.ObjectReference{Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}
	c := w.api.Snapshot()
	for kind, r := range w.api.resources {
		if kind.String() != about.Kind {
			continue
		}
		ref.APIVersion = r.Group.String()
		if o, ok := c.Get(kind, about.Key); ok {
			ref.UID, ref.ResourceVersion = o.GetUID(), o.GetResourceVersion()
		}
	}
	return ref
}
