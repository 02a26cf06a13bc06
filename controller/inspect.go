package controller

import (
	"context"
	"slices"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// inspectEvery bounds how often the Problems of others are worked out. Nobody
// waits for them, and endpoints may change a thousand times a second.
const inspectEvery = 500 * time.Millisecond

// inspect compiles what speakers and proxies compile, for the Problems.
func (h *Controller) inspect(ctx context.Context) error {
	changes := h.options.Source.Watch()
	defer changes.Stop()
	var table *route.Table
	var unknown []<-chan struct{} // each closed once the objects of a kind that table names are known
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.C():
		case <-first(unknown):
		case <-wake.C:
		}
		unknown = slices.DeleteFunc(unknown, isClosed)
		c, now := h.options.Source.Snapshot(), time.Now()
		var next time.Time
		h.settle("source", c.Faults)
		if o := h.options.Announce; o != nil {
			plan := announce.Compile(c, "", announce.ViewOf(c), now, *o)
			h.settle("announce", plan.Problems)
			next = earlier(next, plan.NextWake)
		}
		if o := h.options.Routes; o != nil {
			options := *o
			options.Now = now
			before := table
			table = route.Compile(c, before, options)
			if !table.SameReferences(before) {
				unknown = h.refer(table)
			}
			if len(unknown) == 0 { // else every one of them would be missed
				h.settle("route", table.Problems)
			}
			next = earlier(next, table.NextWake)
		}
		rearm(wake, earlier(next, h.heldBack()), inspectEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(inspectEvery):
		}
	}
}

// refer declares the objects that t names. It returns a channel for each kind of
// which some are not known yet.
func (h *Controller) refer(t *route.Table) []<-chan struct{} {
	var seen []<-chan struct{}
	for _, kind := range route.Referenced() {
		seen = append(seen, h.options.Source.Refer(kind, t.References(kind)))
	}
	return slices.DeleteFunc(seen, isClosed)
}

// first returns the first channel, or nil.
func first(list []<-chan struct{}) <-chan struct{} {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// earlier returns the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rearm lets wake go off at next, which zero means never, but not sooner than
// after pause.
func rearm(wake *time.Timer, next time.Time, pause time.Duration) {
	if next.IsZero() {
		wake.Stop()
		return
	}
	wake.Reset(max(pause, time.Until(next)))
}

// settle replaces the Problems that one compiler found and reports the new ones.
func (h *Controller) settle(compiler string, problems []snapshot.Problem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.issues[compiler] = problems
	h.reporter.report(h.problemsLocked())
}

// heldBack is when a Problem is to be reported that was held back; zero: never.
func (h *Controller) heldBack() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reporter.due
}

// Problems returns what is wrong, ordered. Only the leader knows all of it.
func (h *Controller) Problems() []snapshot.Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leading.Load() {
		return h.options.Source.Snapshot().Faults
	}
	return h.problemsLocked()
}

func (h *Controller) problemsLocked() []snapshot.Problem {
	var all []snapshot.Problem
	for _, list := range h.issues {
		all = append(all, list...)
	}
	return snapshot.Distinct(all)
}
