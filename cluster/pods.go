package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podPage is how many pods one answer of the API server lists.
const podPage = 500

// NodesOfPods returns the nodes that the pods of a label selector are on, without those
// that have ended. It asks the API server, since pods are not watched.
func (a *API) NodesOfPods(ctx context.Context, namespace, selector string) (map[string]struct{}, error) {
	nodes, page := map[string]struct{}{}, metav1.ListOptions{LabelSelector: selector, Limit: podPage}
	for {
		pods := &corev1.PodList{}
		if err := a.clients.listPods(ctx, namespace, &page, pods); err != nil {
			return nil, fmt.Errorf("list pods %s in namespace %s: %w", selector, namespace, err)
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; isOn(p) {
				nodes[p.Spec.NodeName] = struct{}{}
			}
		}
		if page.Continue = pods.Continue; page.Continue == "" {
			return nodes, nil
		}
	}
}

// isOn reports whether a pod is on a node, and has not ended.
func isOn(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func (c *clients) listPods(ctx context.Context, namespace string, page *metav1.ListOptions, into *corev1.PodList) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	return c.byGroup[corev1.SchemeGroupVersion].Get().Namespace(namespace).Resource("pods").
		VersionedParams(page, c.parameters).Do(bounded).Into(into)
}
