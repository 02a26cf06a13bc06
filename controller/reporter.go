package controller

import (
	"context"
	"slices"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// reporter turns Problems into Events, when they appear; see remind for those that
// last.
type reporter struct {
	source  *cluster.Source
	writer  cluster.Writer
	now     func() time.Time
	reports cluster.Reports
}

func newReporter(source *cluster.Source, writer cluster.Writer, now func() time.Time) *reporter {
	return &reporter{source: source, writer: writer, now: now}
}

// report takes all Problems that exist now.
func (r *reporter) report(problems []snapshot.Problem) {
	c := r.source.Snapshot()
	for _, p := range r.reports.Fresh(cluster.Joined(problems), r.now(), func(ref snapshot.Ref) bool { return exists(c, ref) }) {
		r.writer.Event(p.Object, "Warning", p.Reason, p.Message)
	}
}

// due is when a text that was held back is to be reported; zero: there is none.
func (r *reporter) due() time.Time { return r.reports.Due() }

// isDue reports whether a text that was held back is to be reported now.
func (r *reporter) isDue() bool { return !r.due().IsZero() && !r.now().Before(r.due()) }

func (r *reporter) forget() { r.reports = cluster.Reports{} }

// exists reports whether ref is an object of the cluster, not a file or server.
func exists(c *snapshot.Cluster, ref snapshot.Ref) bool {
	for kind := range snapshot.Kinds() {
		if kind.String() == ref.Kind {
			_, ok := c.Get(kind, ref.Key)
			return ok
		}
	}
	return false
}

// reminders is how many Problems that last are told again at once, every
// cluster.RemindEvery: 20,000 come to their turn within the hour, and leave half of
// the rate at which Events are sent to what is new.
const reminders = 180

// remind tells Problems that last again, before their Events are forgotten.
func (h *Controller) remind(ctx context.Context) error {
	again := cluster.Repeats{Most: reminders}
	return cluster.Remind(ctx, func(now time.Time) { h.remindOf(&again, now) })
}

func (h *Controller) remindOf(again *cluster.Repeats, now time.Time) {
	c := h.options.Source.Snapshot()
	lasting := slices.DeleteFunc(cluster.Joined(h.Problems()), func(p snapshot.Problem) bool { return !exists(c, p.Object) })
	for _, p := range again.Due(lasting, now) {
		h.options.Writer.Event(p.Object, "Warning", p.Reason, p.Message)
	}
}
