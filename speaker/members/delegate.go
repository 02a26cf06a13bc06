package members

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/memberlist"

	"quayside.io/speaker/announce"
)

// delegate receives memberlist's callbacks. memberlist holds its locks while it calls,
// so nothing here calls memberlist or blocks.
type delegate struct{ m *Members }

// NodeMeta is not used: what a node says of itself may be larger.
func (d *delegate) NodeMeta(int) []byte { return nil }

// NotifyMsg handles a gossiped message, and queues for gossip what of it was new.
func (d *delegate) NotifyMsg(b []byte) {
	changed, err := d.m.take(b)
	if changed {
		d.m.changed()
	}
	d.m.complain(err)
}

// GetBroadcasts returns queued messages to gossip.
func (d *delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.m.queue.GetBroadcasts(overhead, limit)
}

// LocalState is the whole state, for a push/pull exchange.
func (d *delegate) LocalState(bool) []byte { return d.m.state.whole() }

// MergeRemoteState merges the state of another member. What it learns in that way while it
// starts a member does not pass on: those that said it gossip it themselves, or have long
// done so. Each speaker that restarts among 5,000 would tell all others what they know for
// minutes, and of all that start at once each would queue what all others have said. What a
// settled member learns so, others may have missed, too.
func (d *delegate) MergeRemoteState(b []byte, _ bool) {
	pass := d.m.isSettled()
	err := splitState(b, func(one []byte) {
		_, err := d.m.learn(one, pass)
		d.m.complain(err)
	})
	d.m.complain(err)
	d.m.changed()
}

// complaint is the shortest interval between two log lines about messages that are not
// understood: a member, such as one of a newer version, may send many of them.
const complaint = 10 * time.Second

func (m *Members) complain(err error) {
	if err == nil {
		return
	}
	m.mu.Lock()
	often := time.Since(m.complained) < complaint
	if !often {
		m.complained = time.Now()
	}
	m.mu.Unlock()
	if !often {
		m.opts.Log.Warn("message of another member is not understood", "error", err)
	}
}

// take merges one message, gossips what of it was new, and reports whether anything changed
// by it.
func (m *Members) take(b []byte) (changed bool, err error) { return m.learn(b, true) }

// learn does what take does. Unless it is to pass on what was new, it gossips nothing of that.
func (m *Members) learn(b []byte, pass bool) (changed bool, err error) {
	msg, err := parse(b, time.Now())
	if err != nil {
		return false, err
	}
	if msg.kind == kindAsk || msg.kind == kindReached {
		if w := m.watching.Load(); w != nil {
			w.hear(msg)
		}
		return false, nil
	}
	if msg.node == m.opts.NodeName && msg.kind != kindClaims {
		m.recall(msg.version)
		return false, nil // this node knows itself better than any other does
	}
	alive := m.isAlive(msg.node)
	orphaned := m.orphaned(msg, alive)
	if len(orphaned) == 0 && !m.state.isNews(msg, alive) || !m.believes(msg, b) {
		return false, nil // a signature costs more to verify than all else
	}
	if msg.sealed != nil {
		msg.sealed = &sealed{bytes.Clone(b), msg.sealed.said} // memberlist takes b back
	}
	if contested := m.state.contested(msg); alive && len(contested) > 0 {
		m.opts.Log.Info("another member claims what this node has, which is announced again", "node", msg.node, "addresses", contested)
	}
	news, changed := m.state.merge(msg, alive)
	if pass {
		m.broadcast(news)
	}
	if m.state.owe(orphaned) {
		poke(m.news)
	}
	return changed, nil
}

// recall notes the version that others remember of this node. An earlier process may have
// had a later clock: then versions taken from today's would be ignored as old.
func (m *Members) recall(version uint64) {
	if past := m.past.Load(); version > past {
		m.past.Store(version)
		poke(m.wake)
	}
}

// broadcast queues messages for gossip.
func (m *Members) broadcast(messages [][]byte) {
	for _, b := range messages {
		m.queue.QueueBroadcast(gossip(b))
	}
	if len(messages) > 0 {
		poke(m.news)
	}
}

// gossip is one queued message. Merging is idempotent, so no message has to invalidate
// another.
type gossip []byte

// Invalidates implements memberlist.Broadcast.
func (g gossip) Invalidates(memberlist.Broadcast) bool { return false }

// UniqueBroadcast implements memberlist.UniqueBroadcast: the queue need not compare each
// message with all others.
func (g gossip) UniqueBroadcast() {}

// Message implements memberlist.Broadcast.
func (g gossip) Message() []byte { return g }

// Finished implements memberlist.Broadcast.
func (g gossip) Finished() {}

// NotifyJoin is called when a member is alive that was not.
func (d *delegate) NotifyJoin(n *memberlist.Node) {
	d.m.opts.Log.Info("member lives", "node", n.Name, "address", n.Address())
	d.m.update(func() {
		if d.m.missing[n.Name] == Unanswered {
			d.m.returned = append(d.m.returned, n.Name)
		}
		d.m.alive[n.Name] = struct{}{}
		d.m.lastSeen[n.Name] = time.Now()
		delete(d.m.missing, n.Name)
	})
	poke(d.m.wake)
	poke(d.m.others)
	poke(d.m.news)
}

// Unanswered is why a member is missing that has not left by itself.
const Unanswered = "it does not answer"

// whyGone is why a member is missing that was met.
func (m *Members) whyGone(name string) string {
	if m.state.isLeaving(name) {
		return "it has left"
	}
	return Unanswered
}

// NotifyLeave is called when a member is dead or has left.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	defer poke(d.m.news)
	if n.Name == d.m.opts.NodeName {
		return // this node itself leaves
	}
	why := d.m.whyGone(n.Name)
	d.m.opts.Log.Info("member is gone", "node", n.Name, "reason", why)
	d.m.update(func() {
		delete(d.m.alive, n.Name)
		delete(d.m.doubted, n.Name)
		d.m.missing[n.Name] = why
	})
	poke(d.m.others)
}

// NotifyUpdate is called for changed metadata, of which there is none.
func (d *delegate) NotifyUpdate(*memberlist.Node) {}

// AckPayload implements memberlist.PingDelegate.
func (d *delegate) AckPayload() []byte { return nil }

// NotifyPingComplete is called when a member has answered a probe.
func (d *delegate) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	dropStopped()
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	d.m.lastSeen[n.Name] = time.Now()
	d.m.dirty = true // for the next View; Watch does not signal it
}

// NotifyConflict is called when two nodes have the same name.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	why := fmt.Sprintf("two speakers call themselves %s, at %s and %s", existing.Name, existing.Address(), other.Address())
	d.m.opts.Log.Error("names of members conflict", "reason", why)
}

// count sets the gauge quayside_members.
func (m *Members) count() {
	m.mu.Lock()
	defer m.mu.Unlock() // the last to know is the last to tell
	alive, missing := len(m.alive), 0
	for _, p := range m.want.Load().Peers {
		if m.lacks(p.Name) == "" {
			continue
		}
		missing++
		if _, counted := m.alive[p.Name]; counted {
			alive--
		}
	}
	m.gauge.WithLabelValues("alive").Set(float64(alive))
	m.gauge.WithLabelValues("missing").Set(float64(missing))
}

// isNew reports whether facts differ from those that were last sent.
func (m *Members) isNew(f announce.Facts) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.version != 0 && m.version >= m.past.Load() && reflect.DeepEqual(f, m.told) {
		return false
	}
	m.told = f
	return true
}
