package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// inspectEvery bounds how often the Problems of others are worked out. Nobody
// waits for them, and endpoints may change a thousand times a second.
const inspectEvery = 500 * time.Millisecond

// ofRoutes names the compiler of routes among those that find Problems.
const ofRoutes = "route"

// inspect compiles what speakers and proxies compile, for the Problems.
func (h *Controller) inspect(ctx context.Context) error {
	changes := h.options.Source.Watch()
	defer changes.Stop()
	var announced overview
	var table *route.Table
	var secrets, configMaps <-chan struct{} // closed once those that table names are known; nil: they are
	granted, passwords := granting{options: h.options.Grants}, passwords{options: h.options.Passwords}
	var grantsRefused, passwordsRefused <-chan struct{} // ready when others are refused than before
	if granted.options != nil {
		grantsRefused = granted.options.To.Changed()
	}
	if passwords.options != nil {
		passwordsRefused = passwords.options.To.Changed()
	}
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.C():
		case <-secrets:
			secrets = nil
		case <-configMaps:
			configMaps = nil
		case <-grantsRefused:
		case <-passwordsRefused:
		case <-wake.C:
		}
		c, now := h.options.Source.Snapshot(), time.Now()
		var next time.Time
		h.settle("source", account{problems: c.Faults})
		if passwords.options != nil {
			h.settle("passwords", account{problems: passwords.step(c)})
		}
		if o := h.options.Announce; o != nil {
			plan := announced.compile(c, now, *o)
			h.settle("announce", account{problems: plan.Problems, of: c})
			next = earlier(next, plan.NextWake)
		}
		if o := h.options.Routes; o != nil {
			before := table
			table = h.routes(c, before)
			if !table.SameReferences(before) {
				secrets = h.refer(snapshot.Secret, table.Secrets())
				configMaps = h.refer(snapshot.ConfigMap, table.ConfigMaps())
			}
			if secrets == nil && configMaps == nil { // else every one of them would be missed
				h.settle(ofRoutes, account{problems: table.Problems})
			}
			h.inspected(table, secrets == nil && configMaps == nil)
			if granted.options != nil {
				h.settle("grants", account{problems: granted.step(c, o.Classes, table)})
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

// refer has objects watched. The channel is closed once they are known; it is nil
// if they are.
func (h *Controller) refer(kind snapshot.Kind, keys []snapshot.Key) <-chan struct{} {
	h.referring.Lock()
	seen := h.options.Source.Refer(kind, keys)
	h.referring.Unlock()
	if cluster.IsClosed(seen) {
		return nil
	}
	return seen
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
func (h *Controller) settle(compiler string, a account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, said := h.issues[compiler]
	h.issues[compiler] = &a
	if said && slices.Equal(before.problems, a.problems) && !h.reporter.isDue() && !h.withheld {
		return
	}
	h.reporter.report(h.problemsLocked())
	select {
	case h.settled <- struct{}{}:
	default:
	}
}

// heldBack is when a Problem is to be reported that was held back; zero: never.
func (h *Controller) heldBack() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reporter.due()
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

func (h *Controller) problemsLocked() []snapshot.Problem { return snapshot.Distinct(h.problemsBut("")) }

// problemsBut returns what all compilers but one have found.
func (h *Controller) problemsBut(one string) (all []snapshot.Problem) {
	for compiler, from := range h.issues {
		list := from.problems
		if compiler == "announce" {
			list, h.withheld = untold(from, cmp.Or(h.issues["assign"], &account{}))
		}
		if compiler != one {
			all = append(all, list...)
		}
	}
	return all
}
