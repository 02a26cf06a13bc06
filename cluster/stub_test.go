package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// stub is an API server of three kinds, which has two EndpointSlices and may be away.
type stub struct {
	server *httptest.Server

	mu      sync.Mutex
	away    bool
	asked   []string // "lists services", and what they are narrowed to
	refused int      // requests for the namespace "gone", which does not exist
	hangUps []context.CancelFunc
}

func newStub(t *testing.T) *stub {
	s := &stub{}
	s.server = httptest.NewServer(s)
	t.Cleanup(func() { s.setAway(true); s.server.Close() })
	return s
}

// setAway says whether the server answers; who watches is left.
func (s *stub) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
	for _, hangUp := range s.hangUps {
		hangUp()
	}
	s.hangUps, s.asked = nil, nil
}

// wasAsked reports whether one of the requests since then was that.
func (s *stub) wasAsked(request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.asked, request)
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	kind, selector := path.Base(r.URL.Path), query.Get("labelSelector")+query.Get("fieldSelector")
	verb := "lists "
	if query.Get("watch") != "" {
		verb = "watches "
	}
	ctx, hangUp := context.WithCancel(r.Context())
	defer hangUp()
	s.mu.Lock()
	away := s.away
	s.asked = append(s.asked, verb+kind+" "+selector)
	s.hangUps = append(s.hangUps, hangUp)
	gone := strings.Contains(r.URL.Path, "/namespaces/gone/")
	if gone {
		s.refused++
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case away:
		panic(http.ErrAbortHandler)
	case gone:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(corev1.Resource("namespaces"), "gone").Status())
	case query.Get("sendInitialEvents") != "": // as a server does that cannot
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case verb == "watches ":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-ctx.Done()
	default:
		s.list(w, kind, selector)
	}
}

// list answers with the EndpointSlices that a selector names.
func (s *stub) list(w http.ResponseWriter, kind, selector string) {
	list := discoveryv1.EndpointSliceList{TypeMeta: metav1.TypeMeta{Kind: "EndpointSliceList", APIVersion: "discovery.k8s.io/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	if kind != "endpointslices" {
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`, map[string]string{"services": "ServiceList", "nodes": "NodeList"}[kind])
		return
	}
	for _, service := range []string{"one", "two"} {
		if selector == "" || selector == discoveryv1.LabelServiceName+"="+service {
			list.Items = append(list.Items, discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: service + "-x", ResourceVersion: "5", Labels: map[string]string{discoveryv1.LabelServiceName: service},
			}})
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// api runs an API on the stub until the test ends.
func (s *stub) api(t *testing.T, o APIOptions) *API {
	t.Helper()
	o.Kubeconfig, o.Log = kubeconfigOf(t, s.server.URL), slog.New(slog.DiscardHandler)
	a, err := NewAPI(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a
}

// The slices of one Service are listed and watched by its label, all of them by none,
// and after an outage everything is watched again.
func TestAnAPIWatchesWhatIsReferredTo(t *testing.T) {
	s := newStub(t)
	a := s.api(t, APIOptions{Kinds: []snapshot.Kind{snapshot.Service, snapshot.Node, snapshot.EndpointSlice}, Referenced: []snapshot.Kind{snapshot.EndpointSlice}})
	wait := func(c <-chan struct{}, what string) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatalf("%s takes more than a minute", what)
		}
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s takes more than a minute; faults: %v", what, a.Snapshot().Faults)
			}
		}
	}
	of := func(service string) int {
		return len(a.Snapshot().SlicesOf(snapshot.Key{Namespace: "ns", Name: service}))
	}
	wait(a.Synced(), "the first look")
	if n := a.Snapshot().EndpointSlices.Len(); n != 0 {
		t.Errorf("%d EndpointSlices that nobody asked for", n)
	}
	one := snapshot.Key{Namespace: "ns", Name: "one"}
	wait(a.Refer(snapshot.EndpointSlice, []snapshot.Key{one}), "a Service's slices")
	if of("one") != 1 || of("two") != 0 {
		t.Errorf("one has %d slices, two %d", of("one"), of("two"))
	}
	request := "watches endpointslices " + discoveryv1.LabelServiceName + "=one"
	until("the watch of it", func() bool { return s.wasAsked(request) })

	s.setAway(true)
	until("noticing that the server is away", func() bool { return len(a.Snapshot().Faults) > 0 })
	s.setAway(false)
	for _, again := range []string{request, "watches services ", "watches nodes "} {
		until("coming back: "+again, func() bool { return s.wasAsked(again) })
	}
	until("saying so", func() bool { return len(a.Snapshot().Faults) == 0 })
	if of("one") != 1 {
		t.Error("the slice was forgotten")
	}

	wait(a.Refer(snapshot.EndpointSlice, []snapshot.Key{{}}), "all slices")
	if of("one") != 1 || of("two") != 1 {
		t.Errorf("of all, one has %d slices, two %d", of("one"), of("two"))
	}
	wait(a.Refer(snapshot.EndpointSlice, []snapshot.Key{one}), "one again")
	until("forgetting the other", func() bool { return of("two") == 0 })
	if of("one") != 1 {
		t.Error("what is still referred to is forgotten")
	}
}

// An Event that reached nobody counts as not said: when the server is back, whoever says it
// again is heard, and not held back as one who repeats himself.
func TestAnEventThatReachedNobodyIsSaidAgain(t *testing.T) {
	s := newStub(t)
	a := s.api(t, APIOptions{Kinds: []snapshot.Kind{snapshot.Service}})
	<-a.Synced()
	say := func(when string) {
		t.Helper()
		a.Event(snapshot.Ref{Kind: "Service", Key: snapshot.Key{Namespace: "ns", Name: "one"}}, "Normal", "Moved", "to this node")
		for end := time.Now().Add(30 * time.Second); !s.wasAsked("lists events "); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s the Event is not sent", when)
			}
		}
	}
	s.setAway(true)
	say("while the server is away")
	s.setAway(false)
	say("when the server is back")
}

// Once the server says that a namespace does not exist, nothing more is sent of what was to be
// said of its objects.
func TestNoEventsOfANamespaceThatIsGone(t *testing.T) {
	s := newStub(t)
	a := s.api(t, APIOptions{Kinds: []snapshot.Kind{snapshot.Service}})
	<-a.Synced()
	s.setAway(false)
	for i := range 40 {
		a.Event(about("gone", fmt.Sprint(i)), "Normal", "Moved", "to this node")
	}
	for i := range 3 {
		a.Event(about("ns", fmt.Sprint(i)), "Normal", "Moved", "to this node")
	}
	waits := func() bool {
		a.events.queue.mu.Lock()
		defer a.events.queue.mu.Unlock()
		return a.events.queue.n > 0
	}
	for end := time.Now().Add(30 * time.Second); waits(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not all Events are sent")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == 0 || s.refused > 10 { // the first, and others if it was answered before they were all said
		t.Errorf("%d Events of 40 were sent to a namespace that is gone", s.refused)
	}
	if !slices.Contains(s.asked, "lists events ") {
		t.Error("the others were not sent")
	}
}
