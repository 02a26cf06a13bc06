package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	c := a.candidate(o)
	for ctx.Err() == nil {
		if err := a.term(ctx, c, run); err != nil {
			return err
		}
	}
	return nil
}

func (a *API) candidate(o LeaseOptions) *candidate {
	return &candidate{leases: a.clients.byGroup[coordinationv1.SchemeGroupVersion], o: o, log: a.log}
}

// alone returns an error where another installation has the Lease: two in one namespace
// would have one leader between them, who knows the options of one, and one set of keys.
// The owner of the Lease says whose it is. Until the first leader has given it one, in its
// first second, nobody can tell.
func (a *API) alone(lease *coordinationv1.Lease) error {
	for _, owner := range lease.OwnerReferences {
		if a.opts.Owner != "" && owner.Kind == "ClusterRole" && owner.Name != a.opts.Owner {
			return fmt.Errorf("the Lease %s/%s belongs to another release of Quayside, that of ClusterRole %s: two in one namespace would share a leader and a gossip key; "+
				"install this one, that of ClusterRole %s, in a namespace of its own", lease.Namespace, lease.Name, owner.Name, a.opts.Owner)
		}
	}
	return nil
}

// term stands for election once and serves until it ends.
func (a *API) term(ctx context.Context, c *candidate, run func(ctx context.Context) error) error {
	if err := c.acquire(ctx, a.alone); err != nil || !c.held {
		return err
	}
	// run ends with the Lease or with ctx, whichever ends first. The Lease outlives ctx: it
	// is held until run has returned.
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	from := c.from
	var holder sync.WaitGroup
	holder.Go(func() {
		c.hold(holding)
		if !c.held {
			end(errLeaseLost)
		}
	})
	err := a.serve(serving, from, c.o, run)
	lost := errors.Is(context.Cause(serving), errLeaseLost)
	stop()
	holder.Wait()
	// What has had no answer may take effect yet; who finds the Lease expired waits for it.
	if c.held && !a.hasYoungDoubts() {
		c.release(context.WithoutCancel(ctx))
	}
	if lost {
		a.log.Warn("leadership lost", "lease", c.o.Name, "error", err)
		return nil // stand again
	}
	return err
}

var errLeaseLost = errors.New("the lease could not be renewed in time")

// serve waits until the leader before can have no write under way, reads what
// it wrote, and runs.
func (a *API) serve(ctx context.Context, from *predecessor, o LeaseOptions, run func(ctx context.Context) error) error {
	if from != nil {
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
