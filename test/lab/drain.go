package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drainGrace is terminationGracePeriodSeconds of a pod that does not say.
const drainGrace = 30 * time.Second

// Lingers makes a pod that goes on serving for this long after it was deleted
// or evicted, as one with a preStop hook that sleeps: whoever routes to it has
// to hear that it ends.
func Lingers(d time.Duration) PodOption { return func(o *podOptions) { o.lingers = d } }

// Cordon marks the node unschedulable, until Uncordon or the end of the test.
func (n *Node) Cordon() {
	n.view.helper()
	n.view.must(n.setUnschedulable(n.view.ctx, true))
	n.view.onEnd(n.Uncordon)
}

// Uncordon ends Cordon. It does not bring pods back.
func (n *Node) Uncordon() {
	n.view.helper()
	n.view.must(n.setUnschedulable(context.Background(), false))
}

func (n *machine) setUnschedulable(ctx context.Context, on bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
	_, err := n.core.client.CoreV1().Nodes().Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Drain does to the test's pods what `kubectl drain --ignore-daemonsets` does:
// it cordons the node, evicts all of them at once, and returns when they have
// ended. Quayside's own pods stay, also those of its Deployments: the lab has
// no scheduler that would put them elsewhere.
func (n *Node) Drain() {
	n.view.helper()
	n.Cordon()
	var mu sync.Mutex
	var evictions sync.WaitGroup
	var failed error
	for _, p := range n.core.podsOf(n.machine) {
		if p.namespace != n.view.namespace {
			continue
		}
		evictions.Go(func() {
			err := p.terminate(n.view.ctx, drainGrace, p.evict)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	evictions.Wait()
	n.view.must(failed)
}

// evict asks the API server for the pod's end, which a PodDisruptionBudget may
// refuse.
func (p *pod) evict(ctx context.Context, options metav1.DeleteOptions) error {
	return p.core.client.CoreV1().Pods(p.namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.namespace, Name: p.name},
		DeleteOptions: &options,
	})
}

// delete is `kubectl delete pod`.
func (p *pod) delete(ctx context.Context, options metav1.DeleteOptions) error {
	return p.core.client.CoreV1().Pods(p.namespace).Delete(ctx, p.name, options)
}
