package controller

import (
	"context"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// Sight is what this process makes of the cluster, for whoever asks.
type Sight struct {
	Cluster *snapshot.Cluster
	Routes  *route.Table
	// Leading says that Problems are all that the leader knows of. Nobody else looks
	// for them.
	Leading  bool
	Problems []snapshot.Problem
}

// Leads reports whether this process leads now.
func (h *Controller) Leads() bool { return h.leading.Load() }

// patience bounds the wait for Secrets and ConfigMaps that nobody named before. What is
// not known in time is told as unread.
const patience = 3 * time.Second

// inspection is what inspect found when it looked last.
type inspection struct {
	table    *route.Table  // nil: it has not looked yet
	complete bool          // what the table names is known
	next     chan struct{} // closed when it has looked again
}

// inspected says what inspect found.
func (h *Controller) inspected(table *route.Table, complete bool) {
	last := h.inspection.Swap(&inspection{table, complete, make(chan struct{})})
	close(last.next)
}

// See returns what there is to see now, with every Secret and ConfigMap that the routes
// name, as far as they may be read and ctx lasts. It needs Options.Routes. What a leader
// has watched is for inspect to say alone: a question has seen an older cluster, perhaps.
func (h *Controller) See(ctx context.Context) Sight {
	ctx, enough := context.WithTimeout(ctx, patience)
	defer enough()
	for h.leading.Load() {
		at := h.inspection.Load()
		c := h.options.Source.Snapshot()
		t := h.routes(c, at.table)
		if ctx.Err() != nil || at.complete && t.SameReferences(at.table) {
			return Sight{c, t, true, h.problemsWith(t)}
		}
		select {
		case <-at.next:
		case <-ctx.Done():
		}
	}
	return h.seeAlone(ctx)
}

// seeAlone is See for who does not lead, and has what the routes name watched since
// somebody asks.
func (h *Controller) seeAlone(ctx context.Context) Sight {
	h.asking.Lock() // whoever has the newer snapshot refers last
	t := h.routes(h.options.Source.Snapshot(), h.seen)
	h.seen = t
	secrets, configMaps := h.referAlone(snapshot.Secret, t.Secrets()), h.referAlone(snapshot.ConfigMap, t.ConfigMaps())
	h.asking.Unlock()
	for _, known := range []<-chan struct{}{secrets, configMaps} {
		select {
		case <-known:
		case <-ctx.Done():
		}
	}
	c := h.options.Source.Snapshot()
	return Sight{Cluster: c, Routes: h.routes(c, t)}
}

// referAlone has objects watched, unless this process has come to lead. The channel is
// closed once they are known.
func (h *Controller) referAlone(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{} {
	h.referring.Lock()
	defer h.referring.Unlock()
	if h.leading.Load() {
		known := make(chan struct{})
		close(known)
		return known
	}
	return h.options.Source.Refer(kind, keys)
}

// routes compiles the routes of c. prev may be nil.
func (h *Controller) routes(c *snapshot.Cluster, prev *route.Table) *route.Table {
	o := *h.options.Routes
	o.Now = time.Now()
	return route.Compile(c, prev, o)
}

// problemsWith returns the leader's Problems, those of the routes as t has them.
func (h *Controller) problemsWith(t *route.Table) []snapshot.Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return snapshot.Distinct(append(h.problemsBut(ofRoutes), t.Problems...))
}
