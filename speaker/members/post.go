package members

import (
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"
)

// post sends messages to members by TCP, where gossip would be too small or too slow. The
// owner of post.tasks waits for them.
type post struct {
	m     *Members
	list  *memberlist.Memberlist
	tasks *sync.WaitGroup
}

// spread gossips what fits a packet and sends the rest to every member: that a link went
// down must not wait for the next push/pull exchange.
func (p *post) spread(messages [][]byte) {
	for _, b := range messages {
		if len(b) <= maxMessage {
			p.m.broadcast([][]byte{b})
		} else {
			p.send(b, func(string) bool { return true })
		}
	}
}

// remind sends this node's facts and claims to members that were dead or doubted and are
// alive again. Such a member does not join anew, and what was gossiped meanwhile went to
// the living: without this it would answer for addresses that were taken over from it
// until its next push/pull exchange, up to half a minute later.
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

// send sends a message of any length to those of the live members that are named. It does
// not read the nodes that memberlist lists, which memberlist changes concurrently.
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
