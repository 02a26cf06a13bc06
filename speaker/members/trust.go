package members

import (
	"bytes"
	"crypto/ed25519"
	"maps"
	"slices"
	"sync"
	"time"
)

// Keys are those with which nodes sign what they say of themselves, by node, as the
// API server has them: the present one first, then the one before. Of a node without
// one, everything is believed: its speaker is of a version that signs nothing, or has
// not begun.
type Keys map[string][]ed25519.PublicKey

// Bounds on what is kept in case that a key is on its way.
const (
	heldPerNode = 16
	heldInAll   = 256
)

// keyPatience is how long a new key may be on its way through the API server.
const keyPatience = 30 * time.Second

// forgedFor is how long it is told that somebody spoke in another's name.
const forgedFor = 10 * time.Minute

// trust decides whether a message is from the node that it is about. Whoever has the
// gossip key can write any.
type trust struct {
	mu     sync.Mutex
	keys   Keys
	held   map[string]*held // by node
	size   int              // of held
	forged map[string]time.Time

	patience time.Duration
}

// held are messages of a node that it has not signed with a key which is known.
type held struct {
	messages [][]byte
	since    time.Time
}

func newTrust() *trust {
	return &trust{held: map[string]*held{}, forged: map[string]time.Time{}, patience: keyPatience}
}

// set takes new keys, and returns what was held of nodes whose keys have changed.
func (t *trust) set(keys Keys) (again [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for node, h := range t.held {
		if !equalKeys(keys[node], t.keys[node]) {
			again = append(again, h.messages...)
			t.release(node)
		}
	}
	t.keys = keys
	return again
}

func (t *trust) release(node string) {
	t.size -= len(t.held[node].messages)
	delete(t.held, node)
}

func equalKeys(a, b []ed25519.PublicKey) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// of are the keys of a node; none: it signs nothing that can be verified.
func (t *trust) of(node string) []ed25519.PublicKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[node]
}

// lacks reports whether a key of one of nodes is unknown.
func (t *trust) lacks(nodes map[string]struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for node := range nodes {
		if len(t.keys[node]) == 0 {
			return true
		}
	}
	return false
}

// hold keeps a message until its node's key changes. The newest stay.
func (t *trust) hold(node string, b []byte, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.held[node]
	if h == nil {
		h = &held{since: now}
	}
	switch {
	case len(h.messages) >= heldPerNode:
		h.messages = append(h.messages[:0:0], h.messages[1:]...)
		t.size--
	case t.size >= heldInAll:
		return
	}
	h.messages = append(h.messages, b)
	t.held[node] = h
	t.size++
}

// note notes that somebody spoke in the name of node.
func (t *trust) note(node string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.forged[node]; known || len(t.forged) < maxUnknown {
		t.forged[node] = now
	}
}

// expired takes out the messages, by node, whose key has not come in time.
func (t *trust) expired(now time.Time) map[string][][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	expired := map[string][][]byte{}
	for node, h := range t.held {
		if now.Sub(h.since) >= t.patience {
			expired[node] = h.messages
			t.release(node)
		}
	}
	return expired
}

// forgeries are the nodes in whose names others have spoken of late, and when last.
func (t *trust) forgeries(now time.Time) map[string]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.forged, func(_ string, at time.Time) bool { return now.Sub(at) > forgedFor })
	return maps.Clone(t.forged)
}

// SetKeys declares the keys of all nodes; the latest call counts.
func (m *Members) SetKeys(keys Keys) {
	again := m.trust.set(keys)
	poke(m.wake) // who lives may all understand signatures now
	for _, b := range again {
		if changed, err := m.take(b); err == nil && changed {
			m.changed()
		}
	}
}

// PublicKey is that of the key with which this life of the node signs.
func (m *Members) PublicKey() ed25519.PublicKey { return m.state.key.Public().(ed25519.PublicKey) }

// Forgeries are the nodes in whose names others have spoken within ten minutes, and
// when they last did. What they said was not believed.
func (m *Members) Forgeries() map[string]time.Time {
	now := time.Now()
	for node, messages := range m.trust.expired(now) {
		if slices.ContainsFunc(messages, m.wouldMove) {
			m.trust.note(node, now)
		}
	}
	return m.trust.forgeries(now)
}

// wouldMove reports whether a message that is not believed says what its node has not
// said otherwise in the meantime. What it said of old, before it had the key that is
// known here, others may go on telling for a while.
func (m *Members) wouldMove(b []byte) bool {
	msg, err := parse(b, time.Now())
	msg.claims, msg.sealed = m.state.existing(msg.claims), nil
	return err == nil && m.state.isNews(msg, false)
}

// believes decides on a message that would change something. One that is not
// believed now may be later, when the key arrives with which it is signed.
func (m *Members) believes(msg message, b []byte) bool {
	keys := m.trust.of(msg.node)
	if msg.node == m.opts.NodeName && len(keys) > 0 {
		keys = append(keys[:len(keys):len(keys)], m.PublicKey())
	}
	switch {
	case len(keys) == 0 || msg.sealed != nil && msg.sealed.isBy(keys):
		return true
	case msg.sealed == nil && m.state.mixed.Load():
		// A speaker of the version before passes on what it heard, without the
		// signature, which it did not understand. The signed word comes, too.
		m.rejected.WithLabelValues("unsigned").Inc()
		return false
	case msg.sealed == nil:
		m.rejected.WithLabelValues("unsigned").Inc()
	default:
		m.rejected.WithLabelValues("signature").Inc()
	}
	m.trust.hold(msg.node, bytes.Clone(b), time.Now())
	return false
}
