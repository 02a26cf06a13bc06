package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnsureSecret makes a Secret with one key, unless a Secret of that name has
// the key already: then it stays as it is. Two that try at once agree, because
// the server lets one of them create it.
func (a *API) EnsureSecret(ctx context.Context, namespace, name, key string, value func() []byte) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	core := a.clients.byGroup[corev1.SchemeGroupVersion]
	have := &corev1.Secret{}
	err := core.Get().Namespace(namespace).Resource("secrets").Name(name).Do(bounded).Into(have)
	switch {
	case err == nil && len(have.Data[key]) > 0:
		return nil
	case err == nil: // made by someone who left the filling to us
		if have.Data == nil {
			have.Data = map[string][]byte{}
		}
		have.Data[key] = value() // whatever else is in it stays
		err = core.Put().Namespace(namespace).Resource("secrets").Name(name).Body(have).Do(bounded).Error()
	case apierrors.IsNotFound(err):
		err = core.Post().Namespace(namespace).Resource("secrets").Body(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{
				"app.kubernetes.io/managed-by": "quayside-controller"}},
			Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{key: value()},
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
