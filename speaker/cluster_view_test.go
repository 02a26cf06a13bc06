package speaker

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// stage is a source whose endpoints come when the test says so.
type stage struct {
	c      *snapshot.Cluster
	synced chan struct{}
	seen   chan struct{}  // to be closed once the endpoints asked for are known
	asked  []snapshot.Key // whose endpoints

	seenNodes  chan struct{} // the same of Nodes; nil: they are at once
	askedNodes []snapshot.Key
}

func (s *stage) Snapshot() *snapshot.Cluster { return s.c }
func (s *stage) Synced() <-chan struct{}     { return s.synced }
func (s *stage) Refer(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{} {
	if kind == snapshot.Node {
		s.askedNodes = keys
		if s.seenNodes != nil {
			s.seenNodes = make(chan struct{})
			return s.seenNodes
		}
		known := make(chan struct{})
		close(known)
		return known
	}
	s.asked, s.seen = keys, make(chan struct{})
	return s.seen
}

func local(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal},
	}
}

// Nothing is shown of a Service before its endpoints are known: an address whose owner
// seems to have none would move.
func TestAServiceIsNotShownBeforeItsEndpoints(t *testing.T) {
	source := &stage{c: snapshot.Of(local("a")), synced: make(chan struct{})}
	s := newClusterView(source, "n1", 0, slog.New(slog.DiscardHandler))
	if s.look() != source.c || s.complete || source.asked != nil {
		t.Fatalf("half a cluster: asked for %v, complete %v", source.asked, s.complete)
	}
	close(source.synced)
	s.look()
	if key := (snapshot.Key{Namespace: "default", Name: "a"}); s.complete || s.coming[snapshot.EndpointSlice] == nil || !slices.Equal(source.asked, []snapshot.Key{key}) {
		t.Fatalf("asked for %v, complete %v", source.asked, s.complete)
	}
	source.c = source.c.With(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	close(source.seen)
	if s.look() != source.c || !s.complete || s.coming[snapshot.EndpointSlice] != nil {
		t.Fatal("the endpoints are known, and it is not shown")
	}

	before := source.c
	source.c = before.With(local("b"))
	if s.look() != before || s.coming[snapshot.EndpointSlice] == nil || len(source.asked) != 2 {
		t.Errorf("b is shown, and its endpoints are not known; asked for %v", source.asked)
	}
	if !s.complete {
		t.Error("what is announced stays")
	}
	source.c = source.c.With(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}})
	if s.look() != before {
		t.Error("b is shown with what came after it")
	}
	close(source.seen)
	if s.look() != source.c {
		t.Error("its endpoints are known, and it is not shown")
	}

	asked := source.asked
	source.c = source.c.With(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inner"}})
	if s.look() != source.c || len(source.asked) != len(asked) {
		t.Errorf("endpoints of a Service that has no address are asked for: %v", source.asked)
	}
	source.c = source.c.Without(snapshot.Service, snapshot.Key{Namespace: "default", Name: "b"})
	if s.look(); len(source.asked) != 1 {
		t.Errorf("still asked for %v", source.asked)
	}
}

// Where most Services need their endpoints, all are watched at once, and where few of many
// do, theirs are. At the limit it does not alternate.
func TestTheEndpointsOfMostServicesAreOneWatch(t *testing.T) {
	c := snapshot.Of()
	for i := range fewServices + 1 {
		c = c.With(local(fmt.Sprint(i)))
	}
	source := &stage{c: c, synced: make(chan struct{})}
	close(source.synced)
	s := newClusterView(source, "n1", 0, slog.New(slog.DiscardHandler))
	if s.look(); !slices.Equal(source.asked, []snapshot.Key{{}}) {
		t.Errorf("asked for %v", source.asked)
	}
	source.c = c.With(local("one more"))
	asked := source.seen
	if s.look(); source.seen != asked {
		t.Errorf("asked again, for %v", source.asked)
	}
	inner := func(i int) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("inner-", i)}}
	}
	step := func(change snapshot.Object) int {
		source.c = source.c.With(change)
		if s.look(); len(source.asked) == 1 {
			return -1
		}
		return len(source.asked)
	}
	for i := range 20 { // twice as many as need theirs
		source.c = source.c.With(inner(i))
	}
	if n := step(local("at the limit")); n != -1 {
		t.Errorf("it has alternated: %d are asked for", n)
	}
	for i := range 20 {
		source.c = source.c.With(inner(100 + i))
	}
	if n := step(local("far below")); n != 12 {
		t.Errorf("%d are asked for", n)
	}
	if n := step(local("the next")); n != 13 {
		t.Errorf("%d are asked for", n)
	}
	for i := range 2 * mostServices {
		source.c = source.c.With(local(fmt.Sprint("more-", i%mostServices))).With(inner(1000 + i))
	}
	if n := step(local("too many")); n != -1 {
		t.Errorf("%d are asked for", n)
	}
}
