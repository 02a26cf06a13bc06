package ownership

import (
	"net/netip"
	"slices"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// facts are what this node says about itself now.
func (m *Machine) facts() announce.Facts {
	if announce.Drained(m.world.Cluster, m.opts.Node, m.opts.HandOverOnCordon) {
		m.departure.drained.say(m.now, m.needsNotice())
	} else {
		m.departure.drained = drainNotice{}
	}
	return announce.Facts{
		Interfaces: withoutNodes(m.world.Cluster, m.world.Link.Interfaces), Behind: m.world.Proxy.Behind,
		Leaving: m.departure.stops.holds(m.now), Drained: m.departure.drained.holds(m.now),
	}
}

// withoutNodes leaves nodes out of the gateways. Where pods are routed without
// tunnels, every node is a gateway of every other: a node that joins would be
// told by all, in a list of all. That nobody may announce a node's address the
// Node objects say already.
func withoutNodes(c *snapshot.Cluster, in []announce.Interface) []announce.Interface {
	nodes := map[netip.Addr]struct{}{}
	for _, n := range c.Nodes.All() {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				nodes[ip] = struct{}{}
			}
		}
	}
	out := slices.Clone(in)
	for i := range out {
		out[i].Gateways = slices.DeleteFunc(slices.Clone(out[i].Gateways), func(g netip.Addr) bool { _, is := nodes[g]; return is })
	}
	return out
}

// peers are the nodes by their first InternalIP.
func (m *Machine) peers() (self netip.Addr, peers []Peer) {
	for _, n := range m.world.Cluster.Nodes.Sorted() {
		for _, a := range n.Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || a.Type != "InternalIP" {
				continue
			}
			if n.Name == m.opts.Node {
				self = ip
			} else {
				peers = append(peers, Peer{n.Name, ip})
			}
			break
		}
	}
	return self, peers
}
