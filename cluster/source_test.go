package cluster

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

func isReady(s *Subscription) bool {
	synctest.Wait()
	select {
	case <-s.C():
		return true
	default:
		return false
	}
}

func TestSourceHoldsOffAndCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(nil)
		ctx, stop := context.WithCancel(t.Context())
		go s.loop(ctx)
		defer func() { stop(); <-s.stopped }()

		services, slices := s.Watch(snapshot.Service), s.Watch(snapshot.EndpointSlice)
		if !isReady(services) || !isReady(slices) {
			t.Fatal("a new subscription is not ready for the first snapshot")
		}

		start := time.Now()
		for _, name := range []string{"a", "b", "c"} {
			s.note(false, func(l *ledger) { l.put(service(name, "1")) })
		}
		if isReady(services) {
			t.Error("a change did not wait for others")
		}
		<-services.C()
		if d := time.Since(start); d != holdOff {
			t.Errorf("changes were published after %v, want %v", d, holdOff)
		}
		if n := s.Snapshot().Services.Len(); n != 3 {
			t.Errorf("%d Services in the first snapshot, want all 3", n)
		}
		if isReady(slices) {
			t.Error("a Service woke who watches EndpointSlices")
		}
	})
}

func TestEndpointsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(nil)
		ctx, stop := context.WithCancel(t.Context())
		go s.loop(ctx)
		defer func() { stop(); <-s.stopped }()

		sub := s.Watch(snapshot.EndpointSlice)
		<-sub.C()
		start := time.Now()
		s.note(false, func(l *ledger) { l.put(service("a", "1")) })
		synctest.Wait() // the loop now holds off
		s.note(true, func(l *ledger) {
			l.put(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "e", ResourceVersion: "2"}})
		})
		<-sub.C()
		if d := time.Since(start); d != 0 {
			t.Errorf("an EndpointSlice waited %v", d)
		}
	})
}

func TestWhatIsToldIsVisible(t *testing.T) {
	s := newSource(nil)
	ctx, stop := context.WithCancel(t.Context())
	go s.loop(ctx)
	if err := s.tell(t.Context(), func(l *ledger) { l.put(service("a", "1")) }); err != nil {
		t.Fatal(err)
	}
	if n := s.Snapshot().Services.Len(); n != 1 {
		t.Errorf("%d Services after tell returned, want 1", n)
	}
	stop()
	<-s.stopped
	if err := s.tell(t.Context(), func(*ledger) {}); err == nil {
		t.Error("telling a stopped source succeeded")
	}
}

func TestSyncedWaitsForEveryKind(t *testing.T) {
	s := newSource([]snapshot.Kind{snapshot.Service, snapshot.Node})
	s.enter([]change{{apply: func(l *ledger) { l.replace(groupOf(scope{kind: snapshot.Service}), nil, "1") }}})
	if IsClosed(s.Synced()) {
		t.Fatal("synced without the Nodes")
	}
	s.enter([]change{{apply: func(l *ledger) { l.settle(scope{kind: snapshot.Node}) }}})
	if !IsClosed(s.Synced()) {
		t.Fatal("not synced although every kind is settled")
	}
}

func TestStoppedSubscriptionIsNotWoken(t *testing.T) {
	s := newSource(nil)
	sub := s.Watch()
	<-sub.C()
	sub.Stop()
	s.enter([]change{{apply: func(l *ledger) { l.put(service("a", "1")) }}})
	select {
	case <-sub.C():
		t.Error("a stopped subscription was woken")
	default:
	}
}

// One changed object must not cost more in a large cluster than in a small one.
func BenchmarkEnterOneChange(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			s := newSource(nil)
			var all []snapshot.Object
			for i := range size {
				all = append(all, service(strconv.Itoa(i), "1"))
			}
			s.enter([]change{{apply: func(l *ledger) { l.replace(groupOf(scope{kind: snapshot.Service}), all, "1") }}})
			version := 1
			b.ReportAllocs()
			for b.Loop() {
				version++
				o := service(strconv.Itoa(version%size), strconv.Itoa(version))
				s.enter([]change{{apply: func(l *ledger) { l.put(o) }}})
			}
		})
	}
}
