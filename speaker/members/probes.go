package members

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// probes are the questions to members that are not watched, so that a death which nobody
// waits for is known, too. They go to one member after the other in a shuffled round, and
// each is a watch in passing. A member that is watched has its turn in the round without
// being asked or anything having to wake: where all are, there are no probes.
type probes struct {
	round []Peer    // those whose turn is still to come; the first is asked at the time below
	at    time.Time // zero: nobody is to be asked
}

// probe asks the member whose turn it is. The caller holds mu.
func (w *watching) probe(ctx context.Context, now time.Time) {
	p := &w.probes
	if p.at.IsZero() || p.at.After(now) || ctx.Err() != nil {
		return
	}
	if next := p.round[0]; w.isProbed(next) {
		w.start(ctx, next, true)
	}
	p.round = p.round[1:]
	w.nextProbe(now)
}

// nextProbe finds the next member to ask, in what is left of this round and in the one
// after it. The caller holds mu.
func (w *watching) nextProbe(from time.Time) {
	p := &w.probes
	for range 2 {
		for ; len(p.round) > 0; p.round = p.round[1:] {
			if from = from.Add(w.m.timing.probe); w.isProbed(p.round[0]) {
				p.at = from
				return
			}
		}
		p.round = w.m.livingPeers()
	}
	p.at = time.Time{}
}

// isProbed reports whether a member is to be asked when it is its turn. The caller holds mu.
func (w *watching) isProbed(p Peer) bool { return w.at[p.Name] == nil && w.m.isAlive(p.Name) }

// livingPeers are the peers that are alive, in random order.
func (m *Members) livingPeers() []Peer {
	peers := slices.Clone(m.want.Load().Peers)
	peers = slices.DeleteFunc(peers, func(p Peer) bool { return !p.Addr.IsValid() || !m.isAlive(p.Name) })
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	return peers
}
