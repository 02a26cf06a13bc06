package speaker

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/members"
)

// How often a SpeakerStatus is written: an edge (announcements, leaving, interfaces) soon;
// the live members rarely, since all speakers read them, though a death at once if none has
// been told for a while; BGP sessions, which change for all
// speakers at once, the more rarely the more speakers there are, twenty per second in total.
// A change that has been reverted by then is not written at all. What is announced, and who
// is alive, must have stood for a while, though not without end: a death moves addresses
// one after the other, and a speaker that is restarted is back at once.
const (
	edgePause  = 500 * time.Millisecond
	quietPause = 5 * time.Second
	quietShare = 50 * time.Millisecond // for each node of the cluster
	failPause  = 2 * time.Second       // about, after a write that failed
	failShare  = 10 * time.Millisecond // for each node of the cluster

	edgeSettles, edgeSettlesBy   = 500 * time.Millisecond, 2 * time.Second
	quietSettles, quietSettlesBy = 5 * time.Second, 30 * time.Second
)

// settles is how long what is wanted must have stood, and after how long it is written all
// the same.
func settles(have, want *v1alpha1.SpeakerStatusStatus) (stood, atMost time.Duration) {
	rest := *want
	rest.Announcing, rest.AnnouncingCount = have.Announcing, have.AnnouncingCount
	switch {
	case isEdge(have, &rest), want.Leaving, !same(have.GossipSecrets, want.GossipSecrets):
		return 0, 0
	case isEdge(have, want):
		return edgeSettles, edgeSettlesBy
	case slices.EqualFunc(have.BGPSessions, want.BGPSessions, sameSession):
		return quietSettles, quietSettlesBy
	}
	return 0, 0
}

// wanted is a status, and since when it has been wanted like that.
type wanted struct {
	v1alpha1.SpeakerStatusStatus
	since time.Time
}

// pause is the time between two writes, in a cluster of so many nodes.
func pause(have, want *v1alpha1.SpeakerStatusStatus, nodes int) time.Duration {
	switch {
	case isEdge(have, want):
		return edgePause
	case slices.EqualFunc(have.BGPSessions, want.BGPSessions, sameSession):
		return quietPause
	}
	return max(quietPause, time.Duration(nodes)*quietShare)
}

// deathPause is the time between two writes that tell of deaths, in a cluster of so many
// nodes: a rack may lose its power node by node.
func deathPause(nodes int) time.Duration {
	return max(edgePause, min(quietPause, time.Duration(nodes)*quietShare))
}

// failurePause is the time until a write that failed is tried again, in a cluster of so many
// nodes, whose writes may all have failed at the same time. While the server is away the
// writer itself waits for its turn, too.
func failurePause(nodes int) time.Duration {
	d := max(failPause, time.Duration(nodes)*failShare)
	return d/2 + rand.N(d)
}

// tellsOfDeath reports whether what is wanted misses a member that has not left by itself,
// and what was written does not.
func tellsOfDeath(have, want *v1alpha1.SpeakerStatusStatus) bool {
	return slices.ContainsFunc(want.Members.NotAlive, func(text string) bool {
		return strings.HasSuffix(text, ": "+members.Unanswered) && !slices.Contains(have.Members.NotAlive, text)
	})
}

// publisher writes this node's SpeakerStatus.
type publisher struct {
	source *cluster.Source
	writer cluster.Writer
	node   string
	log    *slog.Logger
	want   atomic.Pointer[wanted]
	wake   chan struct{}
	parts  []*part
}

// part is a part of a SpeakerStatus that the API server drops if the installed CRD is of an
// older version: Helm does not upgrade CRDs.
type part struct {
	name, without string // its name in the CRD, and the effect of its absence
	lost          func(have, want *v1alpha1.SpeakerStatusStatus) bool
	drop          func(*v1alpha1.SpeakerStatusStatus)
	dropped       atomic.Bool
}

func parts() []*part {
	return []*part{{
		name: "gossipKey", without: "what this speaker tells the others is believed without its signature",
		lost: func(have, want *v1alpha1.SpeakerStatusStatus) bool { return have.GossipKey != want.GossipKey },
		drop: func(s *v1alpha1.SpeakerStatusStatus) { s.GossipKey = "" },
	}, {
		name: "gossipSecrets", without: "the gossip key is not changed as long as that is so",
		lost: func(have, want *v1alpha1.SpeakerStatusStatus) bool {
			return !same(have.GossipSecrets, want.GossipSecrets)
		},
		drop: func(s *v1alpha1.SpeakerStatusStatus) { s.GossipSecrets = nil },
	}, {
		name: "unheard", without: "addresses that the network filters are told in Events alone",
		lost: func(have, want *v1alpha1.SpeakerStatusStatus) bool { return !same(have.Unheard, want.Unheard) },
		drop: func(s *v1alpha1.SpeakerStatusStatus) { s.Unheard = nil },
	}, {
		name: "node", without: "all speakers watch all Nodes, however many there are",
		lost: func(have, want *v1alpha1.SpeakerStatusStatus) bool { return have.Node == nil && want.Node != nil },
		drop: func(s *v1alpha1.SpeakerStatusStatus) { s.Node = nil },
	}, {
		name: "interfaces.addresses", without: "which of the prefixes of this node are its own addresses, and which are routes, is guessed",
		lost: func(have, want *v1alpha1.SpeakerStatusStatus) bool {
			return tellsAddresses(want) && !tellsAddresses(have)
		},
		drop: func(s *v1alpha1.SpeakerStatusStatus) {
			s.Interfaces = slices.Clone(s.Interfaces) // the machine has the same
			for i := range s.Interfaces {
				s.Interfaces[i].Addresses, s.Interfaces[i].Routes = nil, nil
			}
		},
	}}
}

// tellsAddresses reports whether a status tells own addresses from routes.
func tellsAddresses(s *v1alpha1.SpeakerStatusStatus) bool {
	return slices.ContainsFunc(s.Interfaces, func(i v1alpha1.SpeakerInterface) bool { return len(i.Addresses)+len(i.Routes) > 0 })
}

func newPublisher(o Options) *publisher {
	return &publisher{source: o.Source, writer: o.Writer, node: o.NodeName, log: o.Log, wake: make(chan struct{}, 1), parts: parts()}
}

// set declares the wanted status. It never blocks, and the latest wins.
func (p *publisher) set(s v1alpha1.SpeakerStatusStatus) {
	for _, part := range p.parts {
		if part.dropped.Load() {
			part.drop(&s)
		}
	}
	since := time.Now()
	if before := p.want.Load(); before != nil && equal(&before.SpeakerStatusStatus, &s) {
		since = before.since
	}
	p.want.Store(&wanted{s, since})
	poke(p.wake)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run writes until ctx ends.
func (p *publisher) run(ctx context.Context) error {
	var written, mourned time.Time // when any status was, and one that tells of a death
	var differs, failing time.Time // since when another status is wanted than there is; until when none is tried
	timer := time.NewTimer(time.Hour)
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-timer.C:
		}
		wish := p.want.Load()
		have := p.have()
		if wish == nil || equal(&have.Status, &wish.SpeakerStatusStatus) {
			differs = time.Time{}
			continue
		}
		want, now := &wish.SpeakerStatusStatus, time.Now()
		if differs.IsZero() {
			differs = now
		}
		nodes := p.source.Snapshot().SpeakerStatuses.Len()
		next := written.Add(pause(&have.Status, want, nodes))
		if stood, atMost := settles(&have.Status, want); stood > 0 {
			next = later(next, earlier(wish.since.Add(stood), differs.Add(atMost)))
		}
		death := tellsOfDeath(&have.Status, want)
		if death {
			next = earlier(next, mourned.Add(deathPause(nodes)))
		}
		if wait := later(next, failing).Sub(now); wait > 0 && !(want.Leaving && !have.Status.Leaving) {
			timer.Reset(wait)
			continue
		}
		written, differs = now, time.Time{}
		if death {
			mourned = now
		}
		have.Status = *want.DeepCopy()
		err := p.writer.UpdateStatus(ctx, have)
		switch {
		case err == nil:
			failed, failing = "", time.Time{}
			p.noteDropped(want)
			timer.Reset(quietPause) // another change may have been set meanwhile
		case errors.Is(err, cluster.ErrStale):
			timer.Reset(edgePause)
		default:
			if err.Error() != failed && ctx.Err() == nil {
				p.log.Warn("SpeakerStatus could not be written; announcing goes on", "error", err)
			}
			failed = err.Error()
			wait := failurePause(nodes)
			failing = now.Add(wait)
			timer.Reset(wait)
		}
	}
}

// noteDropped finds the parts of a written status that the API server has dropped, and
// sets the status without them: else it would be written again and again.
func (p *publisher) noteDropped(want *v1alpha1.SpeakerStatusStatus) {
	have := p.have()
	for _, part := range p.parts {
		if part.lost(&have.Status, want) && part.dropped.CompareAndSwap(false, true) {
			p.log.Warn("the CRD of SpeakerStatus is of a version that knows no " + part.name + ": " + part.without + "; apply the CRDs of this version")
			p.set(p.want.Load().SpeakerStatusStatus) // which may be newer
		}
	}
}

// flushed reports whether the wanted status has been written, apart from the live members:
// those are written too rarely for a speaker that stops to wait for.
func (p *publisher) flushed() bool {
	want := p.want.Load()
	return want == nil || !isEdge(&p.have().Status, &want.SpeakerStatusStatus)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// have returns a copy of the current SpeakerStatus, or a new one.
func (p *publisher) have() *v1alpha1.SpeakerStatus {
	c := p.source.Snapshot()
	if s, ok := c.SpeakerStatuses.Get(snapshot.Key{Name: p.node}); ok {
		return s.DeepCopy()
	}
	s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: p.node}}
	s.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("SpeakerStatus"))
	if n, ok := c.Nodes.Get(snapshot.Key{Name: p.node}); ok && n.UID != "" {
		// Garbage collection deletes it with its Node.
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: n.Name, UID: n.UID}}
	}
	return s
}

// equal compares the written with the wanted status. Empty and nil lists are equal.
func equal(a, b *v1alpha1.SpeakerStatusStatus) bool {
	return !isEdge(a, b) && a.Members.Alive == b.Members.Alive && a.Members.Expected == b.Members.Expected &&
		same(a.GossipSecrets, b.GossipSecrets) && same(a.Unheard, b.Unheard) && same(a.Members.NotAlive, b.Members.NotAlive) && slices.EqualFunc(a.BGPSessions, b.BGPSessions, sameSession)
}

func sameSession(a, b v1alpha1.BGPSession) bool {
	if !a.Since.Equal(b.Since) {
		return false
	}
	a.Since, b.Since = nil, nil
	return a == b
}

func isEdge(a, b *v1alpha1.SpeakerStatusStatus) bool {
	return a.Leaving != b.Leaving || a.GossipKey != b.GossipKey || !reflect.DeepEqual(a.Node, b.Node) || a.AnnouncingCount != b.AnnouncingCount ||
		!same(a.Announcing, b.Announcing) || !same(a.Interfaces, b.Interfaces)
}

func same[T any](a, b []T) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}
