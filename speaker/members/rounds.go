package members

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// fanout is how many members are sent what is new in one round.
	fanout = 3
	// retransmit is by what the logarithm of the number of members is multiplied for how
	// often each member sends a message, in memberlist and in our queue.
	retransmit = 4
	// margin is for how many times the members there are our queue reckons, which is twelve
	// copies more. Each goes to a member by chance, and half of them, on answers to pings, to
	// one that knows: with memberlist's four for seven members one of fifty hears of nothing,
	// and stays in error until the next push/pull exchange.
	margin = 1000
	// settling is how long the first round waits for what is said at once: memberlist logs
	// a suspicion before it queues it.
	settling = time.Millisecond
)

// spreadNews gossips while there is something new, until ctx ends. memberlist would do so
// ten times a second for ever, and a speaker that rests would wake for that as often as for
// all else together. It adds what is queued, its own messages and ours, to whatever it
// sends, so a round of gossip is a round of pings.
//
// What is new is known from our queue, from members that come or go, and, where memberlist
// suspects a member or refutes a suspicion, from what it logs, see noteLogged. A member
// that hears of a suspicion passes it on with its probes and its answers to those.
func (m *Members) spreadNews(ctx context.Context, list caller) {
	var pings sync.WaitGroup
	defer pings.Wait()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.news:
		}
		wait, suspect := settling, ""
		for left := m.rounds(); left > 0; left-- {
			pause.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
			m.answer()
			if name := m.suspect.Swap(nil); name != nil {
				suspect = *name
			}
			for _, p := range m.gossipTargets(suspect) {
				pings.Go(func() { _, _ = list.Ping(p.Name, udpAddr(p.Addr, m.port)) }) // who does not answer is probed anyway
			}
			wait = m.timing.gossip
			select {
			case <-m.news:
				left = m.rounds() + 1
			default:
				if m.queue.NumQueued() > 0 {
					left = max(left, 2)
				}
			}
		}
	}
}

// rounds is how many rounds send one message as often as our queue does, and one more for
// a message that had no place in the first. Where there are few to tell, each round sends it
// less often: a member that leaves ends only once its goodbye has been sent often enough.
func (m *Members) rounds() int {
	targets := max(1, min(fanout, m.numAlive()-1))
	return (m.copies()+targets-1)/targets + 1
}

// copies is how often this member sends a message of ours.
func (m *Members) copies() int {
	return retransmit * int(math.Ceil(math.Log10(float64(m.numReckoned()+1))))
}

// numReckoned is for how many members the number of copies is reckoned.
func (m *Members) numReckoned() int { return margin * m.numAlive() }

// gossipTargets are the members that are sent what is new in one round: one that is suspected,
// which may refute it, and others by chance. One that is doubted, and would take what is sent
// only a few times, is told where there are not enough others.
func (m *Members) gossipTargets(suspect string) []Peer {
	var out, doubted []Peer
	peers := m.want.Load().Peers
	for _, i := range rand.Perm(len(peers)) {
		switch p := peers[i]; {
		case !p.Addr.IsValid() || !m.isAlive(p.Name):
		case p.Name == suspect:
			out = slices.Insert(out, 0, p)
		case m.isDoubted(p.Name):
			doubted = append(doubted, p)
		case len(out) < fanout:
			out = append(out, p)
		}
	}
	out = append(out, doubted...)
	return out[:min(len(out), fanout)]
}

// noteLogged reads in a line of memberlist's log that it has something new to tell of which
// it informs no delegate.
func (m *Members) noteLogged(line string) {
	name, failed := strings.CutPrefix(line, "Suspect ")
	switch {
	case failed:
		name, _, _ = strings.Cut(name, " has failed")
		m.suspect.Store(&name)
	case !strings.HasPrefix(line, "Refuting "):
		return
	}
	poke(m.news)
}
