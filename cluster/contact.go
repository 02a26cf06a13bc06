package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"quayside.io/cluster/snapshot"
)

// The reasons of a Source's own Problems about an API server.
const (
	KindMissing = "KindMissing" // the server does not know a kind of ours
	Forbidden   = "Forbidden"   // this account may not read a kind
	Unreachable = snapshot.Unreachable
)

// contact turns the outcomes of lists and watches into Faults, on the edges.
type contact struct {
	source    *Source
	log       *slog.Logger
	host      string
	optional  func(snapshot.Kind) bool // it may stay unread
	resources map[snapshot.Kind]snapshot.Resource
	patience  time.Duration // with a part that is forbidden

	mu    sync.Mutex
	state map[scope]string // "", or one of the reasons
}

func newContact(s *Source, opts APIOptions, host string, resources map[snapshot.Kind]snapshot.Resource) *contact {
	return &contact{source: s, log: opts.Log, host: host, optional: func(k snapshot.Kind) bool { return opts.Lenient || slices.Contains(opts.Optional, k) },
		resources: resources, patience: opts.Patience, state: map[scope]string{}}
}

// heard notes the outcome of an attempt to read a group's scopes.
func (c *contact) heard(ctx context.Context, g *group, err error) {
	if ctx.Err() != nil {
		return // we hung up
	}
	reason := ""
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		reason = KindMissing
	case apierrors.IsForbidden(err):
		reason = Forbidden
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsInvalid(err), apierrors.IsTooManyRequests(err):
		return // part of the conversation
	case errors.Is(err, context.Canceled):
		return
	default:
		reason = Unreachable
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var news []scope
	for _, s := range g.scopes {
		if was, known := c.state[s]; !known || was != reason {
			c.state[s] = reason
			news = append(news, s)
		}
	}
	if len(news) == 0 {
		return
	}
	if reason != "" {
		c.log.Warn("cannot watch", "kind", g.kind.String(), "namespace", g.namespace, "name", strings.Join(g.names(), ","), "reason", reason, "error", err)
	} else {
		c.log.Debug("watching", "kind", g.kind.String(), "namespace", g.namespace, "name", strings.Join(g.names(), ","))
	}
	faults := c.faultsLocked()
	settled := func(s scope) bool {
		switch {
		case reason != Forbidden:
			return reason == KindMissing
		case s.narrowed(): // nobody waits long for a part of a kind to be permitted: what refers to it is told
			return c.patience <= 0
		}
		return c.optional(s.kind)
	}
	if reason == Forbidden && c.patience > 0 && g.scopes[0].narrowed() {
		time.AfterFunc(c.patience, func() { c.giveUp(news) })
	}
	c.source.note(true, func(l *ledger) {
		l.fault("contact", faults)
		for _, s := range news {
			if reason == KindMissing { // known to be empty
				l.reach(s)
			}
			if settled(s) {
				l.settle(s)
			}
		}
	})
}

// giveUp ends the wait for those parts of a kind that are still forbidden.
func (c *contact) giveUp(scopes []scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s scope) bool { return c.state[s] != Forbidden })
	c.source.note(true, func(l *ledger) {
		for _, s := range scopes {
			l.settle(s)
		}
	})
}

// isLost reports whether anything can be out of date.
func (c *contact) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(c.state)), Unreachable)
}

// forget drops what is known of scopes that are no longer read.
func (c *contact) forget(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range g.scopes {
		delete(c.state, s)
	}
	faults := c.faultsLocked()
	c.source.note(false, func(l *ledger) { l.fault("contact", faults) })
}

// faultsLocked says what is wrong now; the texts stay the same while it is, so
// that no watcher is woken by them.
func (c *contact) faultsLocked() []snapshot.Problem {
	var faults []snapshot.Problem
	unreachable := false
	for s, reason := range c.state {
		r := c.resources[s.kind]
		about := snapshot.Ref{Kind: "APIResource", Key: snapshot.Key{Name: r.Name + "." + r.Group.Group}}
		switch reason {
		case KindMissing:
			message := "the API server does not serve it; taken as empty until it does"
			if isOurs(r) {
				message = "its CustomResourceDefinition is not installed; apply the folder crds of the chart. Taken as empty until then"
			}
			faults = append(faults, snapshot.Problem{Object: about, Reason: reason, Message: message})
		case Forbidden:
			where := ""
			if s.namespace != "" {
				where = " in namespace " + s.namespace
			}
			faults = append(faults, snapshot.Problem{Object: about, Reason: reason,
				Message: "this account may not list and watch it" + where + "; check the roles that the chart installs"})
		case Unreachable:
			unreachable = true
		}
	}
	if unreachable {
		faults = append(faults, snapshot.Problem{
			Object: snapshot.Ref{Kind: "APIServer", Key: snapshot.Key{Name: c.host}}, Reason: Unreachable,
			Message: "no contact; everything goes on as last known"})
	}
	return snapshot.Distinct(faults)
}
