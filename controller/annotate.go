package controller

import (
	"context"
	"errors"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

const (
	// All proxies hear of each note on an Ingress, so there are few in a second:
	noteWrites = 5
	notePause  = time.Second
	// A server that refuses them is asked ever more rarely.
	noteLongPause = time.Minute
)

// Annotator is a *cluster.API.
type Annotator interface {
	Annotate(ctx context.Context, o snapshot.Object, name, value string) error
}

// annotate keeps on each Ingress of our classes what is wrong with it.
func (h *Controller) annotate(ctx context.Context) error {
	changes := h.options.Source.Watch(snapshot.Ingress, snapshot.IngressClass, snapshot.Namespace)
	defer changes.Stop()
	wake := time.NewTimer(notePause)
	defer wake.Stop()
	written, failed := notes{}, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.C():
		case <-h.settled:
		case <-wake.C:
		}
		if problems, known := h.ofIngresses(); known {
			c := h.options.Source.Snapshot()
			classes := ingressclass.Select(&c.Stores, h.options.Routes.Classes)
			due, next := written.due(c.Ingresses, classes, problems, time.Now())
			if len(due) > noteWrites {
				due, next = due[:noteWrites], time.Now()
			}
			failed = h.jot(ctx, written, due, failed)
			rearm(wake, next, notePause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(notePause + failed):
		}
	}
}

// jot writes notes until one is refused, and returns how much longer to pause for that.
func (h *Controller) jot(ctx context.Context, written notes, due []jotting, failed time.Duration) time.Duration {
	for _, j := range due {
		err := h.options.Notes.Annotate(ctx, j.on, route.ProblemsAnnotation, j.text)
		if ctx.Err() != nil {
			return failed
		}
		written.wrote(j, err, time.Now())
		switch {
		case err == nil:
			failed = 0
		case errors.Is(err, cluster.ErrStale): // it has gone, or been made anew
		default:
			if failed == 0 {
				h.log.Warn("what is wrong with an Ingress cannot be noted on it; trying again", "error", err)
			}
			return min(max(2*failed, notePause), noteLongPause)
		}
	}
	return failed
}

// ofIngresses returns the Problems of each Ingress, in order, and false as long as not
// everybody has said what they are.
func (h *Controller) ofIngresses() (map[snapshot.Key][]snapshot.Problem, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, compiler := range []string{"assign", "route"} {
		if _, said := h.issues[compiler]; !said {
			return nil, false
		}
	}
	problems := map[snapshot.Key][]snapshot.Problem{}
	for _, p := range h.problemsLocked() {
		if p.Object.Kind == snapshot.Ingress.String() {
			problems[p.Object.Key] = append(problems[p.Object.Key], p)
		}
	}
	return problems, true
}
