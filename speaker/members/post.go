package members

import (
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"
)

// post is what goes to members directly, where gossip would be too small or too
// late. Whoever makes it waits for its tasks.
type post struct {
	m     *Members
	list  *memberlist.Memberlist
	tasks *sync.WaitGroup
}

// spread gossips what fits a packet and sends the rest to every member: a link
// that went down may not wait for the next exchange of state.
func (p *post) spread(messages [][]byte) {
	for _, b := range messages {
		if len(b) <= maxMessage {
			p.m.broadcast([][]byte{b})
		} else {
			p.send(b, func(string) bool { return true })
		}
	}
}

// remind tells members that were missed and live again what this node holds. Who
// refutes its own death is not joined, and what was gossiped in between went to
// the living: it would go on answering for what was taken over from it, until it
// next exchanges states, half a minute later.
func (p *post) remind() {
	p.m.mu.Lock()
	returned := p.m.returned
	p.m.returned = nil
	p.m.mu.Unlock()
	if len(returned) == 0 {
		return
	}
	for _, mine := range p.m.state.mine() {
		p.send(mine, func(name string) bool { return slices.Contains(returned, name) })
	}
}

// send sends a message of any length to some of the other members that live. The
// nodes that memberlist itself lists change under whoever reads them.
func (p *post) send(b []byte, to func(name string) bool) {
	for _, peer := range p.m.want.Load().Peers {
		if !peer.Addr.IsValid() || !p.m.isAlive(peer.Name) || !to(peer.Name) {
			continue
		}
		node := &memberlist.Node{Name: peer.Name, Addr: peer.Addr.AsSlice(), Port: uint16(p.m.port)}
		p.tasks.Go(func() {
			if err := p.list.SendReliable(node, b); err != nil {
				p.m.opts.Log.Debug("a message did not reach a member", "node", node.Name, "error", err)
			}
		})
	}
}
