package lab

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"quayside.io/test/chart"
)

// Rollout replaces every pod of Quayside, as `helm upgrade` with a new image
// does: all workloads at the same time, each as its strategy in the chart says.
// It returns when the new pods are ready and the old ones are gone.
func (q *Quayside) Rollout() {
	q.view.helper()
	workloads, err := chart.Workloads(q.objects)
	q.view.must(err)
	rollouts, ctx := errgroup.WithContext(q.view.ctx)
	for component, w := range workloads {
		rollouts.Go(func() error { return q.view.core.rollout(ctx, q.installation, component, w) })
	}
	q.view.must(rollouts.Wait())
}

// rollout replaces the pods of one workload, one after the other. Where it may
// surge, the next begins while the old pod still ends.
func (c *core) rollout(ctx context.Context, in *installation, component string, w chart.Workload) error {
	ending, ctx := errgroup.WithContext(ctx)
	for i, old := range in.of(component) {
		end := func() error { return old.remove(ctx, max(old.grace, drainGrace)) }
		m := old.machine
		if w.Surges {
			m = c.emptiest(in.of(component))
		} else if err := end(); err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%d-%s", w.Name, i+1, old.uid[:5])
		now, err := c.runPod(ctx, in, m, w.Pod(name, m.name))
		if err != nil {
			return err
		}
		in.replace(component, old, now)
		if err := now.awaitReady(ctx, 60*time.Second); err != nil {
			return err
		}
		if w.Surges {
			ending.Go(end)
		}
	}
	return ending.Wait()
}

// emptiest is the first of the nodes with the fewest of these pods.
func (c *core) emptiest(pods []*pod) *machine {
	count := map[*machine]int{}
	for _, p := range pods {
		count[p.machine]++
	}
	best := c.nodes[0]
	for _, m := range c.nodes {
		if count[m] < count[best] {
			best = m
		}
	}
	return best
}
