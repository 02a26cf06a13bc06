package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"quayside.io/cluster/snapshot"
)

// LeaseOptions say which Lease makes a leader, and how fast.
type LeaseOptions struct {
	Namespace, Name string
	// Identity tells candidates apart: the pod's name.
	Identity string
	// Duration, Renew and Retry are the Lease's times; 15 s, 10 s and 2 s by
	// default. A leader that cannot renew for Renew stops; another may take
	// over Duration after the last renewal that it saw.
	Duration, Renew, Retry time.Duration
}

// Lead runs run whenever this process is the leader, until ctx ends or run
// fails. run's context ends as soon as leadership does, and the next leader
// waits for what it began; when ctx ends, the Lease is released after run has
// returned, so that the next one need not wait. A write that has begun by then is
// waited for, up to WriteDeadline; after one without an answer the Lease is left to expire.
//
// Where the Lease belongs to another installation, Lead returns an error.
//
// run starts with caches that have seen every write of the leader before: they
// are read again from the server, and if the one before did not release the
// Lease, its last writes have run into their deadline.
func (a *API) Lead(ctx context.Context, o LeaseOptions, run func(ctx context.Context) error) error {
	o.Duration = cmp.Or(o.Duration, 15*time.Second)
	o.Renew = cmp.Or(o.Renew, 10*time.Second)
	o.Retry = cmp.Or(o.Retry, 2*time.Second)
	select {
	case <-a.Synced():
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		if err := a.alone(ctx, o); err != nil {
			return err
		}
		if err := a.term(ctx, o, run); err != nil {
			return err
		}
	}
	return nil
}

// alone returns an error where another installation has the Lease: two in one namespace
// would have one leader between them, who knows the options of one, and one set of keys.
// The owner of the Lease says whose it is. Until the first leader has given it one, in its
// first second, nobody can tell.
func (a *API) alone(ctx context.Context, o LeaseOptions) error {
	if a.opts.Owner == "" {
		return nil
	}
	bounded, cancel := deadline(ctx)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := a.clients.byGroup[coordinationv1.SchemeGroupVersion].Get().Namespace(o.Namespace).Resource("leases").Name(o.Name).Do(bounded).Into(lease)
	if err != nil {
		return nil // there is none, or the election will say why it cannot be read
	}
	for _, owner := range lease.OwnerReferences {
		if owner.Kind == "ClusterRole" && owner.Name != a.opts.Owner {
			return fmt.Errorf("the Lease %s/%s belongs to another release of Quayside, that of ClusterRole %s: two in one namespace would share a leader and a gossip key; "+
				"install this one, that of ClusterRole %s, in a namespace of its own", o.Namespace, o.Name, owner.Name, a.opts.Owner)
		}
	}
	return nil
}

// term stands for election once and serves until it ends.
func (a *API) term(ctx context.Context, o LeaseOptions, run func(ctx context.Context) error) error {
	lock := &lock{LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     coordinationclient.New(a.clients.byGroup[coordinationv1.SchemeGroupVersion]),
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}}
	// The election outlives ctx: the Lease is held until run has returned.
	electing, stop := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer stop()
	leading := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: o.Duration, RenewDeadline: o.Renew, RetryPeriod: o.Retry, Name: o.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { leading <- ctx },
			OnStoppedLeading: func() {},
			OnNewLeader:      func(id string) { a.log.Info("leader", "holder", id, "self", id == o.Identity) },
		},
	})
	if err != nil {
		return fmt.Errorf("leader election by lease %s/%s: %w", o.Namespace, o.Name, err)
	}
	var g errgroup.Group
	g.Go(func() error { elector.Run(electing); return nil })
	g.Go(func() error {
		defer stop()
		var held context.Context
		select {
		case held = <-leading:
		case <-ctx.Done():
			return nil
		}
		// run ends with the Lease or with ctx, whichever ends first.
		serving, end := context.WithCancelCause(ctx)
		defer end(nil)
		defer context.AfterFunc(held, func() { end(errLeaseLost) })()
		err := a.serve(serving, lock, o, run)
		if errors.Is(context.Cause(serving), errLeaseLost) {
			a.log.Warn("leadership lost", "lease", o.Name, "error", err)
			return nil // stand again
		}
		return err
	})
	err = g.Wait()
	// What has had no answer may take effect yet; who finds the Lease expired waits for it.
	if elector.IsLeader() && !a.hasYoungDoubts() {
		lock.release(context.WithoutCancel(ctx))
	}
	return err
}

var errLeaseLost = errors.New("the lease could not be renewed in time")

// serve waits until the leader before can have no write under way, reads what
// it wrote, and runs.
func (a *API) serve(ctx context.Context, lock *lock, o LeaseOptions, run func(ctx context.Context) error) error {
	if from := lock.takenFrom.Load(); from != nil {
		wait := from.wait(o)
		a.log.Info("waiting for the last writes of the leader before", "holder", from.holder, "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
	for {
		err := a.refresh(ctx)
		if err == nil {
			break
		}
		a.log.Warn("reading the cluster before leading", "error", err)
		select {
		case <-time.After(o.Retry):
		case <-ctx.Done():
			return nil
		}
	}
	return run(ctx)
}

// refresh brings the kinds from which addresses are given up to date by a
// consistent read. The watch may lag behind what the leader before wrote.
func (a *API) refresh(ctx context.Context) error {
	for _, kind := range a.opts.Kinds {
		if kind != snapshot.Service && kind != snapshot.IPAddressPool {
			continue
		}
		r := a.resources[kind]
		list, options := r.NewList(), metav1.ListOptions{}
		if err := a.narrow(a.on(r).Get(), groupOf(scope{kind: kind}), r, &options).Do(ctx).Into(list); err != nil {
			return fmt.Errorf("list %s: %w", r.Name, err)
		}
		objects, version, err := unpack(list)
		if err != nil {
			return err
		}
		if err := a.tell(ctx, func(l *ledger) { l.replace(groupOf(scope{kind: kind}), objects, version) }); err != nil {
			return err
		}
	}
	return nil
}

// lock is a Lease that remembers from whom it was taken. That may be ourselves:
// a process that was killed comes back under its own name, and its last writes
// may be under way still.
type lock struct {
	*resourcelock.LeaseLock
	seen      resourcelock.LeaderElectionRecord
	held      bool                        // taken, by this lock
	takenFrom atomic.Pointer[predecessor] // nil: the Lease was free, or released
}

// A predecessor held the Lease and did not release it.
type predecessor struct {
	holder string
	// robbed says that the Lease was deleted. Who held it may not have noticed
	// yet, and goes on until it has failed to renew it for long enough.
	robbed bool
}

// wait is how long it may still write.
func (p *predecessor) wait(o LeaseOptions) time.Duration {
	if p.robbed {
		return o.Renew + WriteDeadline
	}
	return WriteDeadline
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	if err == nil {
		l.seen = *record
	}
	return record, raw, err
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Update(ctx, record)
	if err != nil {
		return err
	}
	l.take(record, false)
	return nil
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Create(ctx, record)
	if err == nil {
		l.take(record, true)
	}
	return err
}

// take notes what was written into the Lease, and whose it was.
func (l *lock) take(record resourcelock.LeaderElectionRecord, robbed bool) {
	if before := l.seen.HolderIdentity; before != "" && !l.held && record.HolderIdentity == l.Identity() {
		l.takenFrom.Store(&predecessor{before, robbed})
	}
	l.seen, l.held = record, record.HolderIdentity == l.Identity()
}

// release gives the Lease up, so that the next leader need not wait for it. The
// elector's own way of doing so does not wait for what the leader began.
//
// A renewal that was given up may reach the Lease between its reading and its writing here,
// in any case once: none begins any more.
func (l *lock) release(ctx context.Context) {
	ctx, cancel := deadline(ctx)
	defer cancel()
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := l.Get(ctx)
		if err != nil || record.HolderIdentity != l.Identity() {
			return nil // it expires by itself
		}
		now := metav1.Now()
		return l.LeaseLock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now})
	})
}
