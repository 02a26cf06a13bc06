package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/cluster/networkpolicy"
	"quayside.io/cluster/snapshot"
)

// podsBehind is how many pods of a Service are looked at: they are alike, as a rule.
const podsBehind = 100

// Behind reads, with the account of a kubeconfig, what stands behind Services that have a
// selector, by their keys' text; nothing where their namespaces have no NetworkPolicy at all.
// It takes the right to get those Services and namespaces, and to list their pods and
// NetworkPolicies, which the controller does not have.
func Behind(ctx context.Context, kubeconfig Kubeconfig, services []snapshot.Key) (map[string]*networkpolicy.Behind, error) {
	c, err := newClients(kubeconfig, "trace", []schema.GroupVersion{corev1.SchemeGroupVersion, networkingv1.SchemeGroupVersion})
	if err != nil {
		return nil, err
	}
	defer c.http.CloseIdleConnections()
	policies, guarded := map[string][]*networkingv1.NetworkPolicy{}, false
	for _, key := range services {
		if _, known := policies[key.Namespace]; known {
			continue
		}
		if policies[key.Namespace], err = c.policies(ctx, key.Namespace); err != nil {
			return nil, err
		}
		guarded = guarded || len(policies[key.Namespace]) > 0
	}
	behind := map[string]*networkpolicy.Behind{}
	if !guarded {
		return behind, nil
	}
	for _, key := range services {
		b, err := c.behind(ctx, key)
		if err != nil {
			return nil, err
		}
		if b != nil {
			b.Policies = policies[key.Namespace]
			behind[key.String()] = b
		}
	}
	return behind, nil
}

func (c *clients) policies(ctx context.Context, namespace string) ([]*networkingv1.NetworkPolicy, error) {
	list := &networkingv1.NetworkPolicyList{}
	err := c.byGroup[networkingv1.SchemeGroupVersion].Get().Namespace(namespace).Resource("networkpolicies").Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("list NetworkPolicies in namespace %s: %w", namespace, err)
	}
	var policies []*networkingv1.NetworkPolicy
	for i := range list.Items {
		policies = append(policies, &list.Items[i])
	}
	return policies, nil
}

// behind is what stands behind a Service; nil: it is gone, or has no selector.
func (c *clients) behind(ctx context.Context, key snapshot.Key) (*networkpolicy.Behind, error) {
	b, within, pods := &networkpolicy.Behind{Service: &corev1.Service{}}, &corev1.Namespace{}, &corev1.PodList{}
	err := c.get(ctx, key.Namespace, "services", key.Name, b.Service)
	switch {
	case apierrors.IsNotFound(err), err == nil && len(b.Service.Spec.Selector) == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := c.get(ctx, "", "namespaces", key.Namespace, within); err != nil {
		return nil, err
	}
	page := &metav1.ListOptions{LabelSelector: labels.Set(b.Service.Spec.Selector).String(), Limit: podsBehind}
	if err := c.listPods(ctx, key.Namespace, page, pods); err != nil {
		return nil, fmt.Errorf("list pods %s in namespace %s: %w", page.LabelSelector, key.Namespace, err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; isOn(p) {
			b.Pods = append(b.Pods, networkpolicy.PodOf(p, within.Labels))
		}
	}
	return b, nil
}

// get reads one object; of the cluster, if namespace is empty.
func (c *clients) get(ctx context.Context, namespace, resource, name string, into runtime.Object) error {
	err := c.byGroup[corev1.SchemeGroupVersion].Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).Do(ctx).Into(into)
	if err != nil {
		return fmt.Errorf("get %s %s: %w", resource, snapshot.Key{Namespace: namespace, Name: name}, err)
	}
	return nil
}
