package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// writers is how many updates are under way at once.
const writers = 32

// lead does the leader's work until ctx ends.
func (h *Controller) lead(ctx context.Context) error {
	h.log.Info("leading")
	h.leading.Store(true)
	defer h.leading.Store(false)
	defer h.forget()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.assign(ctx) })
	g.Go(func() error { return h.inspect(ctx) })
	g.Go(func() error {
		if err := h.prepare(ctx); err != nil {
			return err
		}
		return h.tend(ctx)
	})
	g.Go(func() error { return h.rotate(ctx) })
	g.Go(func() error { return h.remind(ctx) })
	if h.options.Notes != nil {
		g.Go(func() error { return h.annotate(ctx) })
	}
	if o := h.options.Grants; o != nil {
		g.Go(func() error { return o.To.Run(ctx) })
	}
	if o := h.options.Passwords; o != nil {
		g.Go(func() error { return o.To.Run(ctx) })
	}
	if o := h.options.Belongings; o != nil {
		g.Go(func() error { return o.Run(ctx) })
	}
	return g.Wait()
}

// forget drops the state of a leader, so that the next term starts without any.
func (h *Controller) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.issues)
	h.reporter.forget()
	h.plan.Store(nil)
	h.inspected(nil, false)
}

// assign compiles and writes. It wakes when something that assign reads has
// changed, when the plan says so, and to try failed writes again.
func (h *Controller) assign(ctx context.Context) error {
	hosts := hosts{service: h.options.PublishHosts}
	changes := h.options.Source.Watch(
		snapshot.Service, snapshot.Node, snapshot.Namespace, snapshot.Ingress, snapshot.IngressClass,
		snapshot.IPAddressPool, snapshot.L2Advertisement, snapshot.BGPAdvertisement, snapshot.SpeakerStatus)
	defer changes.Stop()
	endpoints, stop := hosts.watch(h.options.Source)
	defer stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	failures, written := retries{}, contests{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.C():
		case <-endpoints:
			if !hosts.changed(h.options.Source.Snapshot()) {
				continue
			}
		case <-wake.C:
		}
		begin := time.Now()
		// In this order: what is no longer in flight must be in the snapshot.
		// The other way round gives one address out twice (assign's model).
		unanswered := inflight(h.options.Writer)
		c := h.options.Source.Snapshot()
		options, hostLeaves := hosts.publish(h.options.Assign, c, begin)
		plan := assign.Compile(c, h.plan.Load(), unanswered, begin, options)
		h.plan.Store(plan)
		updates := failures.due(written.due(plan.Updates, begin), begin)
		h.apply(ctx, updates, failures, written)
		h.settle("assign", account{slices.Concat(plan.Problems, written.problems(), failures.problems()), c, servicesOf(plan.Updates)})
		if len(updates) > 0 {
			h.metrics.applied.Observe(time.Since(begin).Seconds())
		}
		next := earlier(earlier(plan.NextWake, failures.next()), earlier(written.next(), h.heldBack()))
		rearm(wake, earlier(next, hostLeaves), time.Millisecond)
	}
}

// servicesOf are the Services among the objects to be written.
func servicesOf(updates []assign.Update) map[snapshot.Key]struct{} {
	services := make(map[snapshot.Key]struct{}, len(updates))
	for _, u := range updates {
		if _, is := u.Was.(*corev1.Service); is {
			services[snapshot.KeyOf(u.Was)] = struct{}{}
		}
	}
	return services
}

// apply writes updates, and sends the Event of each write that succeeded.
func (h *Controller) apply(ctx context.Context, updates []assign.Update, failures retries, written contests) {
	errs := make([]error, len(updates))
	var g errgroup.Group
	g.SetLimit(writers)
	for i, u := range updates {
		g.Go(func() error {
			if errs[i] = h.options.Writer.UpdateStatus(ctx, u.Object()); errs[i] != nil {
				return nil
			}
			if e, ok := u.Event(); ok {
				h.options.Writer.Event(e.About, e.Type, e.Reason, e.Message)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	for i, err := range errs {
		failures.note(updates[i].Was, err, now)
		switch {
		case err == nil:
			written.note(updates[i].Was, now)
		case errors.Is(err, cluster.ErrStale): // the newer version triggers the loop
			h.log.Debug("computed from an old version", "error", err)
		default:
			h.log.Warn("trying again", "error", err)
		}
	}
}

// inflight is what assign must treat as taken.
func inflight(w cluster.Writer) assign.Inflight {
	taken := assign.Inflight{}
	for _, o := range w.Inflight() {
		s, ok := o.(*corev1.Service)
		if !ok {
			continue
		}
		if addresses := loadbalancer.Addresses(s); len(addresses) > 0 {
			taken[snapshot.KeyOf(s)] = append(taken[snapshot.KeyOf(s)], addresses...)
		}
	}
	return taken
}

// prepare sees to Options.Prepare.
func (h *Controller) prepare(ctx context.Context) error {
	if h.options.Prepare == nil {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := h.options.Prepare(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		h.log.Warn("not prepared; trying again", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// longestRest is how long a leader goes without looking whether what is rotated is
// still as it left it.
const longestRest = time.Hour

// rotate sees to Options.Rotate.
func (h *Controller) rotate(ctx context.Context) error {
	if h.options.Rotate == nil {
		return nil
	}
	for pause := firstPause; ; {
		now := time.Now()
		next, err := h.options.Rotate(ctx, now)
		rest := min(max(next.Sub(now), firstPause), longestRest)
		if err != nil {
			h.log.Warn("not rotated; trying again", "error", err)
			rest, pause = pause, min(2*pause, longPause)
		} else {
			pause = firstPause
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return nil
		}
	}
}
