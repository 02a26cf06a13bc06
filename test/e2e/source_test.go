package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	source "quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/test/lab"
)

func TestSourceWritesOnlyWhatIsOurs(t *testing.T) {
	beside(t)
	c := bare(t)
	_, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	s := serviceIn(api, c)
	if s.ManagedFields != nil || s.Annotations[corev1.LastAppliedConfigAnnotation] != "" {
		t.Error("the snapshot holds what nobody reads")
	}
	given := withAddress(s, "10.77.0.240")
	if err := api.UpdateStatus(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	now := serviceIn(api, c)
	if len(now.Status.LoadBalancer.Ingress) != 1 || now.ResourceVersion == s.ResourceVersion {
		t.Errorf("the snapshot does not show what was written: %+v", now.Status)
	}
	if err := api.UpdateStatus(t.Context(), given); !errors.Is(err, source.ErrStale) {
		t.Errorf("writing from an old version: %v, want ErrStale", err)
	}
	real, err := c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		corev1.LastAppliedConfigAnnotation: "kept by the server", "other": "kept", "quayside.io/ip-allocated-from-pool": "main",
	} {
		if got := real.Annotations[k]; got != want {
			t.Errorf("annotation %s is %q, want %q", k, got, want)
		}
	}
	if in := real.Status.LoadBalancer.Ingress; len(in) != 1 || in[0].IP != "10.77.0.240" {
		t.Errorf("status %+v", real.Status)
	}

	// Taking away must reach the server too.
	freed := now.DeepCopy()
	freed.Status.LoadBalancer.Ingress = nil
	delete(freed.Annotations, "quayside.io/ip-allocated-from-pool")
	if err := api.UpdateStatus(t.Context(), freed); err != nil {
		t.Fatal(err)
	}
	real, err = c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, still := real.Annotations["quayside.io/ip-allocated-from-pool"]; still || len(real.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("freed, yet the server has %v and %+v", real.Annotations, real.Status)
	}

	about := snapshot.RefOf(now)
	for range 3 {
		api.Event(about, "Warning", "Tested", "an event for the owner")
	}
	c.Eventually(10*time.Second, func() error {
		events, err := c.Kube().EventsV1().Events(c.Namespace()).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		n := 0
		for _, e := range events.Items {
			if e.Regarding.UID == now.UID && e.Reason == "Tested" && e.Note == "an event for the owner" {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%d events about the Service, want 1 for three that are the same", n)
		}
		return nil
	})

	c.Delete(plainService)
	awaitService(c, api, "a deletion", func(s *corev1.Service) bool { return s == nil })
}

func TestSourceRemembersWritesWithoutAnswer(t *testing.T) {
	beside(t)
	c := bare(t)
	w, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	before := serviceIn(api, c)

	w.mute.Store(true)
	begin := time.Now()
	err := api.UpdateStatus(t.Context(), withAddress(before, "10.77.0.241"))
	if err == nil || errors.Is(err, source.ErrStale) {
		t.Fatalf("a write without an answer returned %v", err)
	}
	if d := time.Since(begin); d > source.WriteDeadline+10*time.Second {
		t.Errorf("it took %v, more than the deadline", d)
	}
	if in := api.Inflight(); len(in) != 1 || in[0].GetName() != "web" {
		t.Fatalf("in flight: %v, want the Service", in)
	}
	real, err := c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(real.Status.LoadBalancer.Ingress) != 1 {
		t.Fatalf("the server did not get the write, so the test shows nothing: %+v", real.Status)
	}
	w.unmute()
	awaitService(c, api, "the write", func(s *corev1.Service) bool { return len(s.Status.LoadBalancer.Ingress) == 1 })
	if in := api.Inflight(); len(in) != 0 {
		t.Errorf("in flight although the snapshot shows it: %v", in)
	}
}

// leader is a candidate that says when it leads.
type leader struct {
	began chan time.Time
	stop  context.CancelFunc
	ended chan error
}

func stand(t *testing.T, api *source.API, namespace, identity string) *leader {
	ctx, stop := context.WithCancel(t.Context())
	l := &leader{began: make(chan time.Time, 10), stop: stop, ended: make(chan error, 1)}
	go func() {
		l.ended <- api.Lead(ctx, source.LeaseOptions{
			Namespace: namespace, Name: "test", Identity: identity,
			Duration: 5 * time.Second, Renew: 3 * time.Second, Retry: time.Second,
		}, func(ctx context.Context) error {
			l.began <- time.Now()
			<-ctx.Done()
			return nil
		})
	}()
	return l
}

// renewed returns when the Lease has been.
func renewed(t *testing.T, c *lab.Cluster) {
	t.Helper()
	var before *metav1.MicroTime
	c.Eventually(settle, func() error {
		lease, err := c.Kube().CoordinationV1().Leases(c.Namespace()).Get(t.Context(), "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now := lease.Spec.RenewTime; before == nil || now == nil || now.Equal(before) {
			before = now
			return fmt.Errorf("renewed last at %v", now)
		}
		return nil
	})
}

func (l *leader) end(t *testing.T) {
	l.stop()
	if err := <-l.ended; err != nil {
		t.Errorf("Lead: %v", err)
	}
}

func TestLeadershipPassesOn(t *testing.T) {
	beside(t)
	const silence = 4*time.Second + source.WriteDeadline // at least, from the last renewal on
	c := bare(t)
	w, kubeconfig := newWire(t, c)
	_, other := newWire(t, c)
	_, third := newWire(t, c)
	api := connect(t, kubeconfig)
	begin := time.Now()
	one := stand(t, api, c.Namespace(), "one")
	first := <-one.began
	if d := first.Sub(begin); d > silence {
		t.Errorf("a fresh Lease was waited for: %v", d)
	}
	two := stand(t, connect(t, other), c.Namespace(), "two")
	select {
	case <-two.began:
		t.Fatal("two leaders at once")
	case <-time.After(2 * time.Second):
	}

	// A leader that goes politely leaves no gap.
	begin = time.Now()
	one.end(t)
	if d := (<-two.began).Sub(begin); d > silence {
		t.Errorf("the next one led %v after a polite end, as if it had been silent", d)
	} else {
		t.Logf("polite: %v", d.Round(time.Millisecond))
	}
	two.end(t)

	// One that falls silent is waited for, and its last writes too.
	one = stand(t, connect(t, kubeconfig), c.Namespace(), "one again")
	<-one.began
	two = stand(t, connect(t, third), c.Namespace(), "three")
	time.Sleep(1500 * time.Millisecond) // it has seen who leads
	renewed(t, c)                       // from now on, however late the leader was before
	begin = time.Now()
	w.mute.Store(true)
	d := (<-two.began).Sub(begin)
	t.Logf("silent: %v", d.Round(time.Millisecond))
	if d < silence {
		t.Errorf("the next one led after %v, before the silent one's writes could have ended (%v)", d, silence)
	}
	two.end(t)
	w.unmute()
	one.end(t)

	// So are those of a process that was killed and comes back under its name.
	one = stand(t, connect(t, kubeconfig), c.Namespace(), "killed")
	<-one.began
	w.mute.Store(true)
	begin = time.Now()
	two = stand(t, connect(t, third), c.Namespace(), "killed")
	d = (<-two.began).Sub(begin)
	t.Logf("killed and back: %v", d.Round(time.Millisecond))
	if d < source.WriteDeadline {
		t.Errorf("it led again after %v, before its last writes could have ended (%v)", d, source.WriteDeadline)
	}
	two.end(t)
	w.unmute()
	one.end(t)
}
