package speaker

import (
	"net/netip"
	"slices"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// facts are what this node says about itself now.
func (m *mind) facts(now time.Time) announce.Facts {
	if announce.Drained(m.cluster, m.opts.NodeName, m.opts.HandOverOnCordon) {
		m.drained.say(now, m.needsNotice())
	} else {
		m.drained = farewell{}
	}
	return announce.Facts{
		Interfaces: withoutNodes(m.cluster, m.l2.Interfaces()), Behind: m.rules.Behind() != "",
		Leaving: m.stops.holds(now), Drained: m.drained.holds(now),
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
