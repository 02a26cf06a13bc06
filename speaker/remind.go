package speaker

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// reminders is how many Problems that last a speaker tells again at once, every
// cluster.RemindEvery. Those of thousands of speakers go to one API server.
const reminders = 10

// remind tells what is wrong with this node again, as long as it lasts, before the
// Events about it are forgotten.
func (s *Speaker) remind(ctx context.Context) error {
	again := cluster.Repeats{Most: reminders}
	return cluster.Remind(ctx, func(now time.Time) { s.remindOf(&again, now) })
}

func (s *Speaker) remindOf(again *cluster.Repeats, now time.Time) {
	for _, p := range again.Due(cluster.Joined(s.lasting()), now) {
		s.opts.Writer.Event(p.Object, corev1.EventTypeWarning, p.Reason, p.Message)
	}
}

// lasting is what is wrong now that this speaker tells, and no controller: its own
// Problems, and what its sessions lack.
func (s *Speaker) lasting() []snapshot.Problem {
	return slices.Concat(*s.metrics.problems.Load(), sessionProblems(s.opts.NodeName, s.lastStep.Load().sessions))
}
