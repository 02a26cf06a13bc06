package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

const (
	belongingsAgain = time.Minute     // between looks at all of it
	belongingsSoon  = 2 * time.Second // the same where something was written by others meanwhile, and the watch may not have shown it
	nodeIsGone      = time.Minute     // after so long without its Node a SpeakerStatus is deleted
	// belongingsPause lies between two writes of SpeakerStatuses: every speaker hears of
	// each, and thousands of speakers have to be told of thousands.
	belongingsPause = 500 * time.Millisecond
)

// BelongingOptions name what Quayside makes at run time, besides SpeakerStatuses.
type BelongingOptions struct {
	Namespace string
	Secrets   []string // those that somebody else made are left alone
	Lease     string
	// Ensure makes those of Secrets anew that cannot be missed. A release that comes right
	// after another was uninstalled may find theirs, just before they are collected.
	Ensure func(context.Context) error
}

// Belongings sees to it that what Quayside makes at run time goes when it is of no use any
// more. It gets APIOptions.Owner as its owner, with which the garbage collector deletes it.
// An object with several owners goes when the last of them does, so a SpeakerStatus cannot
// have its Node for another; when that is gone, it is deleted here.
type Belongings struct {
	api     *API
	options BelongingOptions
	absent  map[string]time.Time // SpeakerStatuses without their Node, since when
}

// Belongings returns one that does nothing yet.
func (a *API) Belongings(o BelongingOptions) *Belongings {
	return &Belongings{api: a, options: o, absent: map[string]time.Time{}}
}

// Run looks again and again until ctx ends. The API must watch Nodes and SpeakerStatuses.
func (b *Belongings) Run(ctx context.Context) error {
	if b.api.opts.Owner == "" {
		return nil
	}
	told := ""
	for {
		pause := belongingsAgain
		err := b.settle(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrStale):
			pause = belongingsSoon
		case err == nil:
			told = ""
		case err.Error() != told:
			told = err.Error()
			b.api.log.Warn("an uninstall would leave something that was made at run time; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// settle looks at everything once. Where what was written had changed meanwhile, and nothing
// else is wrong, the error is ErrStale.
func (b *Belongings) settle(ctx context.Context) error {
	owner, err := b.api.owner(ctx, b.api.opts.Owner)
	if err != nil {
		return err
	}
	failed := []error{b.options.Ensure(ctx)}
	for _, name := range b.options.Secrets {
		failed = append(failed, b.adopt(ctx, corev1.SchemeGroupVersion, "secrets", name, &corev1.Secret{}, owner))
	}
	failed = append(failed, b.adopt(ctx, coordinationv1.SchemeGroupVersion, "leases", b.options.Lease, &coordinationv1.Lease{}, owner))
	tried := map[types.UID]bool{}
	var stale error
	for ctx.Err() == nil {
		s, write := b.next(b.api.Snapshot(), owner, tried, time.Now())
		if write == nil {
			break
		}
		tried[s.UID] = true
		if err := write(ctx); errors.Is(err, ErrStale) {
			stale = err
		} else {
			failed = append(failed, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(belongingsPause):
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return stale
}

// next returns a SpeakerStatus that is not as it should be, and what mends that; nil: all
// that have not been tried are.
func (b *Belongings) next(c *snapshot.Cluster, owner metav1.OwnerReference, tried map[types.UID]bool, now time.Time) (*v1alpha1.SpeakerStatus, func(context.Context) error) {
	for key := range b.absent {
		if _, there := c.SpeakerStatuses.Get(snapshot.Key{Name: key}); !there {
			delete(b.absent, key)
		}
	}
	for key, s := range c.SpeakerStatuses.All() {
		if _, there := c.Nodes.Get(key); there {
			delete(b.absent, key.Name)
		} else if _, known := b.absent[key.Name]; !known {
			b.absent[key.Name] = now
		}
		if tried[s.UID] {
			continue
		}
		if owners, change := ownedBy(s.OwnerReferences, owner); change {
			return s, func(ctx context.Context) error { return b.api.setOwners(ctx, s, owners) }
		}
		since, absent := b.absent[key.Name]
		if ours := len(s.OwnerReferences) == 1 && s.OwnerReferences[0] == owner; ours && absent && now.Sub(since) >= nodeIsGone {
			return s, func(ctx context.Context) error { return b.api.deleteWithoutNode(ctx, s) }
		}
	}
	return nil, nil
}

// belonging is a Secret or the Lease.
type belonging interface {
	runtime.Object
	metav1.Object
}

// adopt gives an object of the release's namespace its owner. empty is one of its type. Who
// leads renews the Lease every few seconds, and where a renewal came between it is read again.
func (b *Belongings) adopt(ctx context.Context, group schema.GroupVersion, resource, name string, empty belonging, owner metav1.OwnerReference) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	client := b.api.clients.byGroup[group]
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		have := empty.DeepCopyObject().(belonging)
		if err := client.Get().Namespace(b.options.Namespace).Resource(resource).Name(name).Do(bounded).Into(have); err != nil {
			return err
		}
		owners, change := ownedBy(have.GetOwnerReferences(), owner)
		if _, secret := have.(*corev1.Secret); !change || secret && have.GetLabels()[managedBy] != ourselves {
			return nil
		}
		have.SetOwnerReferences(owners)
		// It carries the version that was read.
		return client.Put().Namespace(b.options.Namespace).Resource(resource).Name(name).Body(have).Do(bounded).Error()
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("owner of %s %s/%s: %w", resource, b.options.Namespace, name, err)
	}
	return nil
}

// setOwners changes the owners of a SpeakerStatus and nothing else.
func (a *API) setOwners(ctx context.Context, s *v1alpha1.SpeakerStatus, owners []metav1.OwnerReference) error {
	return a.amend(ctx, "owner of", s, map[string]any{"resourceVersion": s.ResourceVersion, "ownerReferences": owners})
}

// deleteWithoutNode deletes a SpeakerStatus unless the server has a Node of its name: what
// the watch says may be old.
func (a *API) deleteWithoutNode(ctx context.Context, s *v1alpha1.SpeakerStatus) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	nodes := a.resources[snapshot.Node]
	err := a.on(nodes).Get().Resource(nodes.Name).Name(s.Name).Do(bounded).Error()
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		r := a.resources[snapshot.SpeakerStatus]
		this := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}}
		err = a.on(r).Delete().Resource(r.Name).Name(s.Name).Body(this).Do(bounded).Error()
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s, whose Node is gone: %w", snapshot.RefOf(s), err)
	}
	return nil
}
