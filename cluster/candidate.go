package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// candidate wants a Lease, as KEP-589 and client-go have it: who holds it renews it, and
// who finds that it has not changed for its duration takes it. That is measured by a clock
// of one's own, from when a change was seen; the times in a Lease are for people to read.
//
// It is this package's own, since client-go's comes with clients of all kinds that there
// are, a third of what is compiled, and gives a Lease away before what was begun under it
// has ended. One goroutine at a time uses a candidate.
type candidate struct {
	leases rest.Interface
	o      LeaseOptions
	log    *slog.Logger
	told   string // the holder that the log has named

	lease *coordinationv1.Lease // as it was read or written last; nil: there never was one
	gone  bool                  // it is not there, any more or yet
	since time.Time             // it has been as it is, as far as was seen

	held    bool
	renewed time.Time    // when the last write of ours began that was answered
	from    *predecessor // who had it before; nil: it was free
}

// A predecessor held the Lease and did not release it. That may be ourselves: a process
// that was killed comes back under its own name, and its last writes may be under way still.
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

// acquire waits for the Lease until it is held or ctx ends. mine returns an error where a
// Lease is not one to stand for.
func (c *candidate) acquire(ctx context.Context, mine func(*coordinationv1.Lease) error) error {
	c.held, c.from = false, nil // whatever we had in the term before, its last writes are waited for
	for failing := false; ; {
		err := c.read(ctx)
		if err == nil && !c.gone {
			if err := mine(c.lease); err != nil {
				return err
			}
		}
		if err == nil && c.isFree(time.Now()) {
			err = c.write(context.WithoutCancel(ctx)) // an answer that is not waited for would make us leader in secret
		}
		if c.held || ctx.Err() != nil {
			return nil
		}
		if err != nil && !isOvertaken(err) && !failing {
			c.log.Warn("the lease cannot be had; trying again", "lease", c.o.Namespace+"/"+c.o.Name, "error", err)
		}
		failing = err != nil
		select {
		case <-time.After(c.pause()):
		case <-ctx.Done():
			return nil
		}
	}
}

// pause is how long to wait before the next look at the Lease: Retry, or until it expires.
func (c *candidate) pause() time.Duration {
	wait := c.o.Retry + rand.N(c.o.Retry/5)
	if left := time.Until(c.expiry()); left > 0 {
		return min(wait, left)
	}
	return wait
}

// hold renews the Lease until ctx ends or the Lease is lost, to another or for want of an
// answer for Renew.
func (c *candidate) hold(ctx context.Context) {
	for c.held {
		until := c.renewed.Add(c.o.Renew)
		select {
		case <-time.After(min(c.o.Retry, time.Until(until))):
		case <-ctx.Done():
			return
		}
		trying, cancel := context.WithDeadline(ctx, until)
		c.renew(trying)
		cancel()
		if !time.Now().Before(c.renewed.Add(c.o.Renew)) {
			c.held = false
		}
	}
}

// renew writes the Lease again. Where others have written it, such as an owner, it is read
// first, and lost if another holds it.
func (c *candidate) renew(ctx context.Context) {
	err := c.write(ctx)
	if isOvertaken(err) {
		err = c.read(ctx)
		c.held = c.held && (err != nil || c.isFree(time.Now()))
		if err == nil && c.held {
			err = c.write(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		c.log.Debug("the lease could not be renewed; trying again", "lease", c.o.Name, "error", err)
	}
}

// release gives the Lease up, so that the next leader need not wait for it.
//
// A renewal that was given up may reach the Lease between its reading and its writing here,
// in any case once: none begins any more.
func (c *candidate) release(ctx context.Context) {
	ctx, cancel := deadline(ctx)
	defer cancel()
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.read(ctx); err != nil || c.gone || holderOf(c.lease) != c.o.Identity {
			return nil // it expires by itself
		}
		free, now, soon := c.lease.DeepCopy(), metav1.NowMicro(), int32(1)
		free.Spec.HolderIdentity, free.Spec.LeaseDurationSeconds = nil, &soon
		free.Spec.AcquireTime, free.Spec.RenewTime = &now, &now
		return c.put(ctx, free)
	})
	c.held = false
}

// isFree reports whether the Lease is there to be taken, or ours already.
func (c *candidate) isFree(now time.Time) bool {
	holder := holderOf(c.lease)
	return c.gone || holder == "" || holder == c.o.Identity || !now.Before(c.expiry())
}

// expiry is when its holder has left the Lease as it is for too long.
func (c *candidate) expiry() time.Time {
	life := c.o.Duration
	if c.lease != nil && c.lease.Spec.LeaseDurationSeconds != nil {
		life = time.Duration(*c.lease.Spec.LeaseDurationSeconds) * time.Second
	}
	return c.since.Add(life)
}

// read looks at the Lease.
func (c *candidate) read(ctx context.Context) error {
	ctx, cancel := deadline(ctx)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := c.leases.Get().Namespace(c.o.Namespace).Resource("leases").Name(c.o.Name).MaxRetries(0).Do(ctx).Into(lease)
	switch {
	case apierrors.IsNotFound(err):
		c.gone = true
		return nil
	case err != nil:
		return err
	}
	c.saw(lease)
	return nil
}

// saw notes what the Lease is.
func (c *candidate) saw(lease *coordinationv1.Lease) {
	if c.lease == nil || c.gone || !reflect.DeepEqual(c.lease.Spec, lease.Spec) {
		c.since = time.Now()
	}
	c.lease, c.gone = lease, false
	if holder := holderOf(lease); holder != "" && holder != c.told {
		c.told = holder
		c.log.Info("leader", "holder", holder, "self", holder == c.o.Identity)
	}
}

// write takes the Lease, or renews it.
func (c *candidate) write(ctx context.Context) error {
	ctx, cancel := deadline(ctx)
	defer cancel()
	if !c.held {
		c.noteHolder()
	}
	begin := time.Now()
	if err := c.put(ctx, c.wanted(metav1.NewMicroTime(begin))); err != nil {
		return err
	}
	c.held, c.renewed = true, begin
	return nil
}

// noteHolder notes from whom the Lease is being taken. Where it is ours by a write of a
// moment ago that had no answer, that is whom that took it from.
func (c *candidate) noteHolder() {
	switch holder := holderOf(c.lease); {
	case c.gone && c.lease != nil: // whoever took it after we last looked
		c.from = &predecessor{cmp.Or(holder, "unknown"), true}
	case holder == "":
		c.from = nil
	case holder != c.o.Identity || c.from == nil:
		c.from = &predecessor{holder, false}
	}
}

// wanted is the Lease with us as its holder. What others put there stays.
func (c *candidate) wanted(now metav1.MicroTime) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.o.Namespace, Name: c.o.Name}}
	transitions, life := int32(0), int32((c.o.Duration+time.Second-1)/time.Second)
	if !c.gone {
		lease = c.lease.DeepCopy()
	}
	s := &lease.Spec
	if s.LeaseTransitions != nil {
		transitions = *s.LeaseTransitions
	}
	taken := holderOf(lease) != c.o.Identity
	if taken && !c.gone {
		transitions++
	}
	if taken || s.AcquireTime == nil {
		s.AcquireTime = &now
	}
	s.HolderIdentity, s.LeaseDurationSeconds, s.RenewTime, s.LeaseTransitions = &c.o.Identity, &life, &now, &transitions
	return lease
}

// put writes the Lease, if it is as it was read.
func (c *candidate) put(ctx context.Context, lease *coordinationv1.Lease) error {
	request := c.leases.Post()
	if lease.ResourceVersion != "" {
		request = c.leases.Put().Name(c.o.Name)
	}
	answer := &coordinationv1.Lease{}
	if err := request.Namespace(c.o.Namespace).Resource("leases").MaxRetries(0).Body(lease).Do(ctx).Into(answer); err != nil {
		return err
	}
	c.saw(answer)
	return nil
}

// isOvertaken reports whether a write failed since another has written, or deleted the Lease.
func isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// holderOf is who has a Lease; empty: nobody does.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
