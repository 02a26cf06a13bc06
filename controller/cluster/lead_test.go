package cluster

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// oneLease is a server that has one Lease.
type oneLease struct {
	coordinationclient.LeaseInterface
	lease *coordinationv1.Lease
}

func (s *oneLease) Leases(string) coordinationclient.LeaseInterface { return s }

func (s *oneLease) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return s.lease.DeepCopy(), nil
}

func (s *oneLease) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	s.lease = l.DeepCopy()
	return l, nil
}

// TestWhoIsWaitedFor: whoever held the Lease and did not release it may have
// writes under way, also a process of our own name that was killed.
func TestWhoIsWaitedFor(t *testing.T) {
	for _, c := range []struct{ name, holder, wait string }{
		{"released", "", ""},
		{"another's", "pod-2", "pod-2"},
		{"our own, from before we were killed", "pod-1", "pod-1"},
	} {
		server := &oneLease{lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.holder}}}
		l := &lock{LeaseLock: &resourcelock.LeaseLock{Client: server, LockConfig: resourcelock.ResourceLockConfig{Identity: "pod-1"}}}
		for range 3 { // taken, then renewed
			record, _, err := l.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			record.HolderIdentity = "pod-1"
			if err := l.Update(t.Context(), *record); err != nil {
				t.Fatal(err)
			}
			got := ""
			if from := l.takenFrom.Load(); from != nil {
				got = *from
			}
			if got != c.wait {
				t.Fatalf("%s: it waits for %q, wanted %q", c.name, got, c.wait)
			}
		}
	}
}
