package main

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"quayside.io/speaker"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
)

// lan is the one that all nodes are on: who answers for which address.
type lan struct {
	mu      sync.Mutex
	holders map[netip.Addr]*port
	moved   time.Time // when somebody last began to answer
}

func newLAN() *lan { return &lan{holders: map[netip.Addr]*port{}} }

// lastMove is when an address was last answered for by somebody new.
func (l *lan) lastMove() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moved
}

// held is how many addresses are answered for, and how many by a port.
func (l *lan) held(by *port) (all, its int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holders), len(by.have)
}

// kill silences a node.
func (l *lan) kill(p *port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.dead = true
	for a := range p.have {
		if l.holders[a] == p {
			delete(l.holders, a)
		}
	}
	p.have = nil
}

// port is one node's interface on the LAN.
type port struct {
	of   *lan
	at   announce.Interface
	dead bool
	have map[netip.Addr]l2.Announcement
	asks func(netip.Addr) bool // whether a host answers
}

var _ speaker.LAN = (*port)(nil)

// Run implements speaker.LAN.
func (p *port) Run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Set implements speaker.LAN.
func (p *port) Set(w *l2.Want) {
	l := p.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.dead {
		return
	}
	for a := range w.Addresses {
		if l.holders[a] != p {
			l.holders[a], l.moved = p, time.Now()
		}
	}
	for a := range p.have {
		if _, wanted := w.Addresses[a]; l.holders[a] == p && !wanted {
			delete(l.holders, a)
		}
	}
	p.have = w.Addresses
}

// Await implements speaker.LAN.
func (p *port) Await(*l2.Want, time.Duration) {}

// Watch implements speaker.LAN.
func (p *port) Watch() <-chan struct{} { return nil }

// Conflicts implements speaker.LAN.
func (p *port) Conflicts() <-chan l2.Conflict { return nil }

// Interfaces implements speaker.LAN.
func (p *port) Interfaces() []announce.Interface { return []announce.Interface{p.at} }

// Hazards implements speaker.LAN.
func (p *port) Hazards() []string { return nil }

// Failures implements speaker.LAN.
func (p *port) Failures() []string { return nil }

// Neighbours implements speaker.LAN.
func (p *port) Neighbours() ([]l2.Question, error) { return nil, nil }

// Listen implements speaker.LAN. It takes the time of the real one.
func (p *port) Listen(ctx context.Context, questions []l2.Question, t l2.Timing) (map[netip.Addr]l2.Found, bool, error) {
	select {
	case <-ctx.Done():
		return nil, false, ctx.Err()
	case <-time.After(t.Every * time.Duration(t.Times)):
	}
	found, heard := map[netip.Addr]l2.Found{}, false
	for _, q := range questions {
		if q.Host {
			heard = heard || p.asks(q.Address)
			continue
		}
		p.of.mu.Lock()
		if h := p.of.holders[q.Address]; h != nil && h != p {
			found[q.Address], heard = l2.Found{Interface: p.at.Name, MAC: h.at.MAC}, true
		}
		p.of.mu.Unlock()
	}
	return found, heard, nil
}
