package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// oneLease is a server that has one Lease, or none.
type oneLease struct {
	coordinationclient.LeaseInterface
	lease *coordinationv1.Lease
}

func (s *oneLease) Leases(string) coordinationclient.LeaseInterface { return s }

func (s *oneLease) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	if s.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "")
	}
	return s.lease.DeepCopy(), nil
}

func (s *oneLease) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	s.lease = l.DeepCopy()
	return l, nil
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
				got = from.holder
			}
			if got != c.wait {
				t.Fatalf("%s: it waits for %q, wanted %q", c.name, got, c.wait)
			}
		}
	}
}

// TestDeletedLease: who finds the Lease gone may take it at once, while its holder
// goes on until it has failed to renew it. That is waited for; where there never
// was a Lease, nothing is.
func TestDeletedLease(t *testing.T) {
	other := "pod-2"
	options := LeaseOptions{Duration: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}
	for _, c := range []struct {
		name  string
		lease *coordinationv1.Lease // before it was deleted
		wait  time.Duration
	}{
		{"never was", nil, 0},
		{"was released", &coordinationv1.Lease{}, 0},
		{"was another's", &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &other}}, options.Renew + WriteDeadline},
	} {
		server := &oneLease{lease: c.lease}
		l := &lock{LeaseLock: &resourcelock.LeaseLock{Client: server, LockConfig: resourcelock.ResourceLockConfig{Identity: "pod-1"}}}
		_, _, _ = l.Get(t.Context())
		server.lease = nil
		if _, _, err := l.Get(t.Context()); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "pod-1"}
		if err := l.Create(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if err := l.Update(t.Context(), record); err != nil { // renewed
			t.Fatal(err)
		}
		var got time.Duration
		if from := l.takenFrom.Load(); from != nil {
			got = from.wait(options)
		}
		if got != c.wait {
			t.Errorf("%s: it waits %v, wanted %v", c.name, got, c.wait)
		}
	}
}

// TestLeaseOfAnotherRelease: a controller does not stand for election by a Lease that
// another release has, and says which; it does by its own, by one that nobody has yet, and
// where it is not known whose it is.
func TestLeaseOfAnotherRelease(t *testing.T) {
	lease := func(owners ...metav1.OwnerReference) *coordinationv1.Lease {
		return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Name: "quayside-controller", Namespace: "system", OwnerReferences: owners}}
	}
	ours := ownerRef("ClusterRole", "inner-controller", "1")
	for name, c := range map[string]struct {
		owner   string
		lease   *coordinationv1.Lease
		refused bool
	}{
		"ours":                                  {"inner-controller", lease(ours), false},
		"ours and a tenant's":                   {"inner-controller", lease(ownerRef("Tenant", "t", "9"), ours), false},
		"nobody's yet":                          {"inner-controller", lease(), false},
		"none":                                  {"inner-controller", nil, false},
		"another's":                             {"inner-controller", lease(ownerRef("ClusterRole", "quayside-controller", "2")), true},
		"of a release whose owner is not known": {"", lease(ownerRef("ClusterRole", "quayside-controller", "2")), false},
	} {
		t.Run(name, func(t *testing.T) {
			api := serving(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if c.lease == nil || r.URL.Path != "/apis/coordination.k8s.io/v1/namespaces/system/leases/quayside-controller" {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				_ = json.NewEncoder(w).Encode(c.lease)
			})
			api.opts.Owner = c.owner
			err := api.alone(t.Context(), LeaseOptions{Namespace: "system", Name: "quayside-controller"})
			switch {
			case c.refused && (err == nil || !strings.Contains(err.Error(), "belongs to another release of Quayside, that of ClusterRole quayside-controller")):
				t.Errorf("not refused, or without the other's name: %v", err)
			case !c.refused && err != nil:
				t.Error(err)
			}
		})
	}
}
