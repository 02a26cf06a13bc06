package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owner returns what makes the garbage collector delete an object with a ClusterRole. It
// is read anew each time: with the id of one that has been made anew since, the object
// would be deleted at once. blockOwnerDeletion is left out, for it takes a right to the
// finalizers of the owner.
func (a *API) owner(ctx context.Context, name string) (metav1.OwnerReference, error) {
	bounded, cancel := deadline(ctx)
	defer cancel()
	role := &rbacv1.ClusterRole{}
	err := a.clients.byGroup[rbacv1.SchemeGroupVersion].Get().Resource("clusterroles").Name(name).Do(bounded).Into(role)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("owner of what is made at run time: %w", err)
	}
	return metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}, nil
}

// firstOwners are the owners of an object that is made now: Options.Owner, or otherwise
// those given. An object is not refused for want of an owner.
func (a *API) firstOwners(ctx context.Context, otherwise []metav1.OwnerReference) []metav1.OwnerReference {
	if a.opts.Owner == "" {
		return otherwise
	}
	owner, err := a.owner(ctx, a.opts.Owner)
	if err != nil {
		a.log.Debug("made without the owner that it is to have", "error", err)
		return otherwise
	}
	return []metav1.OwnerReference{owner}
}

// ownedBy returns the owners that an object of ours is to have instead of those it has:
// owner in the place of a Node, and of an owner of the same name which is gone. It is
// false where nothing is to be changed, as with an object of another release.
func ownedBy(have []metav1.OwnerReference, owner metav1.OwnerReference) ([]metav1.OwnerReference, bool) {
	var want []metav1.OwnerReference
	for _, r := range have {
		switch {
		case r.Kind == owner.Kind && r.Name != owner.Name:
			return nil, false
		case r.Kind != owner.Kind && r.Kind != "Node":
			want = append(want, r)
		}
	}
	want = append(want, owner)
	return want, !equality.Semantic.DeepEqual(have, want)
}
