package members

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// maxJoins is how many absent peers are tried in one round. One answer is enough to heal
// a split.
const maxJoins = 4

// seekers is about how many members try absent peers in one round. Each attempt makes a
// kernel broadcast an ARP request: in a cluster of a thousand nodes of which one is
// switched off, all would do so all day.
const seekers = 10

// seeks reports whether this member, one of alive, tries absent peers in this round. It
// always does while it knows few members, as after a start or in the smaller part of a
// split.
func seeks(alive int) bool { return rand.IntN(alive) < seekers }

// catchUpAfter is the longest pause before a member that has settled, and has not heard of
// each other what it says of itself, asks one for all that it knows. It does so a few times.
const (
	catchUpAfter = 3 * time.Second
	catchUps     = 8
)

// keepJoining tries absent peers until ctx ends: so the first ones are found, those that
// start later, and the other side of a split that has healed. While nobody is absent it
// rests.
func (m *Members) keepJoining(ctx context.Context, list *memberlist.Memberlist) {
	began := time.Now()
	round := time.NewTimer(0)
	defer round.Stop()
	met := time.Time{}
	var catching sync.WaitGroup
	defer catching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-round.C:
		}
		started := time.Now()
		absent := m.absent()
		if (!m.isSettled() || seeks(m.numAlive())) && m.join(ctx, list, absent) && met.IsZero() {
			met = time.Now()
		}
		if m.settle(began, met) {
			catching.Go(func() { m.catchUp(ctx, list) })
		}
		m.count()
		if m.isSettled() && len(absent) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-m.others:
			}
		}
		pause := m.timing.tcp
		if !m.isSettled() {
			pause = min(pause, 200*time.Millisecond) // it starts: others do too
		}
		// A peer behind a cut costs the whole timeout. A pause as long on top of
		// that would be two seconds in which a split may have healed unnoticed.
		round.Reset(max(pause-time.Since(started), m.timing.tcp/10))
	}
}

// catchUp exchanges the whole state with one member after the other until this one has heard
// from each that lives. Where all start at once, each meets members that know a part only,
// and what it has missed would come with memberlist's next exchange: half a minute later,
// minutes in a large fleet. That all gossip all that they learn while they start takes
// thousands of messages of each among thousands, see MergeRemoteState.
func (m *Members) catchUp(ctx context.Context, list *memberlist.Memberlist) {
	for range catchUps {
		select {
		case <-ctx.Done():
			return
		case <-time.After(catchUpAfter/2 + rand.N(catchUpAfter/2)):
		}
		if m.heardFromAll() {
			return
		}
		peers := m.livingPeers()
		m.join(ctx, list, peers[:min(len(peers), 1)])
	}
}

// heardFromAll reports whether all is known that each which lives has said of itself.
func (m *Members) heardFromAll() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.hasHeardFrom(m.alive)
}

// absent are peers that are not alive, in random order.
func (m *Members) absent() []Peer {
	var out []Peer
	for _, p := range m.want.Load().Peers {
		if p.Addr.IsValid() && p.Name != m.opts.NodeName && !m.isAlive(p.Name) {
			out = append(out, p)
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// join tries some peers at the same time and reports whether one of them answered.
func (m *Members) join(ctx context.Context, list *memberlist.Memberlist, peers []Peer) bool {
	var tries sync.WaitGroup
	var mu sync.Mutex
	met := false
	for _, p := range peers[:min(len(peers), maxJoins)] {
		tries.Go(func() {
			_, err := list.Join([]string{net.JoinHostPort(p.Addr.String(), strconv.Itoa(m.port))})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				met = true
			} else if ctx.Err() == nil {
				m.miss(p.Name, "it cannot be reached: "+lastLine(err.Error()))
			}
		})
	}
	tries.Wait()
	return met
}

// miss notes why a peer is absent, unless a better reason is known.
func (m *Members) miss(name, why string) {
	m.mu.Lock()
	_, alive := m.alive[name]
	known := m.missing[name]
	m.mu.Unlock()
	if !alive && known == "" {
		m.update(func() { m.missing[name] = why })
	}
}

// settle sets View.Settled once all peers are alive; or some are, and the others have had
// a second more; or none has answered within Options.Grace. It reports whether it has.
func (m *Members) settle(began, met time.Time) bool {
	waited := time.Since(began) >= m.opts.Grace || !met.IsZero() && time.Since(met) >= m.opts.Grace/3
	if m.isSettled() || !waited && len(m.absent()) > 0 {
		return false
	}
	m.opts.Log.Info("members have met", "alive", m.numAlive(), "after", time.Since(began).Round(time.Millisecond))
	m.update(func() { m.settled = true })
	return true
}

func (m *Members) isSettled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settled
}
