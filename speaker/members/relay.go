package members

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// relays is how many other members are asked whether they reach a member, and how many
// such questions a member handles at once.
const relays = 3

// askOthers asks up to most other members whether they reach one: only the path from this
// node to it may be broken.
func (w *watching) askOthers(one *watched, most int) {
	b, _ := (&message{kind: kindAsk, node: w.m.opts.NodeName, about: one.Name}).append(nil) // only facts can fail
	peers := slices.Clone(w.m.want.Load().Peers)
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	asked := 0
	for _, p := range peers {
		if p.Name != one.Name && asked < most && p.Addr.IsValid() && w.m.isAlive(p.Name) {
			asked++
			w.send(p, b)
		}
	}
}

// hear handles a question of another member, or the answer to one. It does not block.
func (w *watching) hear(msg message) {
	switch {
	case msg.kind == kindReached:
		w.mu.Lock()
		defer w.mu.Unlock()
		if one := w.at[msg.about]; one != nil {
			one.vouched.Store(true)
		}
	case msg.about == w.m.opts.NodeName:
		if from, known := w.m.peer(msg.node); known && msg.token != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.heartbeats.request(from.Name, netip.AddrPortFrom(from.Addr, uint16(w.m.port)), *msg.token, time.Now())
			w.setTimer()
		}
	default:
		select {
		case w.asks <- msg:
		default: // the other member asks again
		}
	}
}

// relay pings members on behalf of others until ctx ends, and reports those that answer.
// The others it begins to watch, see look.
func (w *watching) relay(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-w.asks:
			asker, known := w.m.peer(msg.node)
			about, exists := w.m.peer(msg.about)
			if !known || !exists {
				continue
			}
			if _, err := w.list.Ping(about.Name, udpAddr(about.Addr, w.m.port)); err == nil {
				b, _ := (&message{kind: kindReached, node: w.m.opts.NodeName, about: about.Name}).append(nil)
				w.send(asker, b)
			} else {
				w.look(ctx, about)
			}
		}
	}
}

// look watches in passing a member that neither the node that asked nor this one reaches.
// This covers members that no surviving node watches: a node watches only so many holders,
// and the next owner of an address may have died with its holder.
func (w *watching) look(ctx context.Context, at Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil && w.at[at.Name] == nil && w.m.isAlive(at.Name) {
		w.start(ctx, at, true)
		w.at[at.Name].told = true
		w.setPause()
		w.setTimer()
	}
}

// peer returns a wanted peer with a valid address.
func (m *Members) peer(name string) (Peer, bool) {
	peers := m.want.Load().Peers
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
	if i < 0 || !peers[i].Addr.IsValid() {
		return Peer{}, false
	}
	return peers[i], true
}
