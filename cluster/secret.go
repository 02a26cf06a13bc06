package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnsureSecret makes a Secret with one key, unless a Secret of that name has
// the key already: then it stays as it is. Two that try at once agree, because
// the server lets one of them create it.
func (a *API) EnsureSecret(ctx context.Context, namespace, name, key string, value func() []byte) error {
	return a.KeepSecret(ctx, namespace, name, func(data map[string][]byte) map[string][]byte {
		if len(data[key]) > 0 {
			return nil
		}
		with := maps.Clone(data) // whatever else is in it stays
		if with == nil {
			with = map[string][]byte{}
		}
		with[key] = value()
		return with
	})
}

// KeepSecret makes the data of a Secret what change returns of it; nil: it stays as it
// is. One that does not exist has none, and is made. Where somebody else writes it
// meanwhile, that stands: whoever made it first is agreed with, and whoever changed it
// is an error, after which to try again.
func (a *API) KeepSecret(ctx context.Context, namespace, name string, change func(data map[string][]byte) map[string][]byte) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	core := a.clients.byGroup[corev1.SchemeGroupVersion]
	have := &corev1.Secret{}
	err := core.Get().Namespace(namespace).Resource("secrets").Name(name).Do(bounded).Into(have)
	switch {
	case err == nil:
		want := change(have.Data)
		if want == nil {
			return nil
		}
		have.Data = want
		err = core.Put().Namespace(namespace).Resource("secrets").Name(name).Body(have).Do(bounded).Error()
	case apierrors.IsNotFound(err):
		err = core.Post().Namespace(namespace).Resource("secrets").Body(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: namespace, Labels: map[string]string{managedBy: ourselves},
				OwnerReferences: a.firstOwners(bounded, nil),
			},
			Type: corev1.SecretTypeOpaque,
			Data: change(nil),
		}).Do(bounded).Error()
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	return nil
}

// ChangeSecret changes what a Secret of ours holds under a key, and an annotation of
// it, together. change is given both, and since when they are as they are; if it
// returns them unchanged, nothing is written. A Secret that somebody else made is
// left alone.
func (a *API) ChangeSecret(ctx context.Context, namespace, name, key, annotation string, change func(value []byte, noted string, made time.Time) ([]byte, string)) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	core := a.clients.byGroup[corev1.SchemeGroupVersion]
	have := &corev1.Secret{}
	if err := core.Get().Namespace(namespace).Resource("secrets").Name(name).Do(bounded).Into(have); err != nil {
		return fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	if have.Labels[managedBy] != ourselves || len(have.Data[key]) == 0 {
		return nil
	}
	value, noted := change(have.Data[key], have.Annotations[annotation], have.CreationTimestamp.Time)
	if bytes.Equal(value, have.Data[key]) && noted == have.Annotations[annotation] {
		return nil
	}
	if have.Annotations == nil {
		have.Annotations = map[string]string{}
	}
	have.Data[key], have.Annotations[annotation] = value, noted
	// It carries the version that was read: who changed it meanwhile wins.
	if err := core.Put().Namespace(namespace).Resource("secrets").Name(name).Body(have).Do(bounded).Error(); err != nil {
		return fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	return nil
}
