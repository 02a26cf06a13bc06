package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"maps"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/speaker"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/members"
)

// spread is how long what one says takes to be known by all, and how often they learn
// something new at most.
const spread = 100 * time.Millisecond

// gossip is the membership of the whole fleet: what one says all others know after
// spread. What each knows is the same, so there is one view for all of them; memberlist
// itself, whose packets the API server never sees, is not run.
type gossip struct {
	mu       sync.Mutex
	alive    map[string]*member
	where    map[netip.Addr]string
	facts    map[string]announce.Facts
	claims   map[netip.Addr]announce.Claim
	missing  map[string]string
	lastSeen map[string]time.Time
	dirty    bool
	view     atomic.Pointer[members.View]
}

func newGossip() *gossip {
	g := &gossip{
		alive: map[string]*member{}, where: map[netip.Addr]string{}, facts: map[string]announce.Facts{},
		claims: map[netip.Addr]announce.Claim{}, missing: map[string]string{}, lastSeen: map[string]time.Time{},
	}
	g.view.Store(&members.View{Waiting: "gossip is starting"})
	return g
}

// run shows what is new until ctx ends.
func (g *gossip) run(ctx context.Context) {
	for ticker := time.NewTicker(spread); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
			g.show()
		}
	}
}

func (g *gossip) show() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.dirty {
		return
	}
	g.dirty = false
	before := g.view.Load()
	v := &members.View{
		Alive: make(map[string]struct{}, len(g.alive)), Claims: maps.Clone(g.claims), Facts: before.Facts,
		LastSeen: maps.Clone(g.lastSeen), Missing: maps.Clone(g.missing), Settled: true,
	}
	if !reflect.DeepEqual(before.Facts, g.facts) {
		v.Facts = maps.Clone(g.facts)
	}
	for name := range g.alive {
		v.Alive[name] = struct{}{}
	}
	g.view.Store(v)
	for _, m := range g.alive {
		select {
		case m.watch <- struct{}{}:
		default:
		}
	}
}

// kill ends a member as a power cut does.
func (g *gossip) kill(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.alive[name]; m != nil {
		close(m.dead)
		delete(g.alive, name)
		g.missing[name], g.lastSeen[name], g.dirty = "it does not answer", time.Now(), true
	}
}

// isAlive reports whether who is reached at an address lives.
func (g *gossip) isAlive(at netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.alive[g.where[at]] != nil
}

// errDead ends a speaker as a power cut would: it has no time to hand over.
var errDead = errors.New("the node is dead")

// member is one node's part in gossip.
type member struct {
	of    *gossip
	name  string
	watch chan struct{}
	dead  chan struct{}
	key   ed25519.PublicKey
}

var _ speaker.Gossip = (*member)(nil)

func (g *gossip) join(name string, at netip.Addr) *member {
	m := &member{of: g, name: name, watch: make(chan struct{}, 1), dead: make(chan struct{}), key: keyOf(name)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alive[name], g.where[at], g.dirty = m, name, true
	delete(g.missing, name)
	return m
}

// keyOf is a node's key. Nobody signs here; what is published has its size.
func keyOf(name string) ed25519.PublicKey {
	key := make(ed25519.PublicKey, ed25519.PublicKeySize)
	copy(key, name)
	return key
}

// Run implements speaker.Gossip.
func (m *member) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.dead:
		return errDead
	}
}

// Set implements speaker.Gossip.
func (m *member) Set(w *members.Want) {
	g := m.of
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.alive[m.name] != m {
		return
	}
	for a, epoch := range w.Claims {
		c := announce.Claim{Epoch: epoch, Node: m.name}
		if old, known := g.claims[a]; !known || c.Beats(old) {
			g.claims[a], g.dirty = c, true
		}
	}
	if old, known := g.facts[m.name]; !known || !reflect.DeepEqual(old, w.Facts) {
		g.facts[m.name], g.dirty = w.Facts, true
	}
}

// Watch implements speaker.Gossip.
func (m *member) Watch() <-chan struct{} { return m.watch }

// View implements speaker.Gossip.
func (m *member) View() *members.View { return m.of.view.Load() }

// SetKeys implements speaker.Gossip.
func (m *member) SetKeys(members.Keys) {}

// PublicKey implements speaker.Gossip.
func (m *member) PublicKey() ed25519.PublicKey { return m.key }

// KeyPrints implements speaker.Gossip.
func (m *member) KeyPrints() []string { return nil }

// Forgeries implements speaker.Gossip.
func (m *member) Forgeries() map[string]time.Time { return nil }

// Probe implements speaker.Gossip.
func (m *member) Probe(ctx context.Context, at netip.Addr, timeout time.Duration) members.Liveness {
	if m.of.isAlive(at) {
		return members.Listening
	}
	select {
	case <-ctx.Done():
	case <-time.After(timeout):
	}
	return members.Silent
}
