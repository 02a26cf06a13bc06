package ownership

import (
	"net/netip"
	"slices"

	"quayside.io/speaker/announce"
)

// facts are what this node publishes about itself now.
func (m *Machine) facts() announce.Facts {
	if announce.Drained(m.world.Cluster, m.opts.Node, m.opts.HandOverOnCordon) {
		m.departure.drained.say(m.now, m.needsNotice())
	} else {
		m.departure.drained = drainNotice{}
	}
	return announce.Facts{
		Interfaces: withoutNodes(m.nodes().NodeIndex, m.world.Link.Interfaces), Behind: m.world.Proxy.Behind,
		Leaving: m.departure.stops.holds(m.now), Drained: m.departure.drained.holds(m.now),
	}
}

// withoutNodes removes nodes from the gateways. Where pods are routed without tunnels,
// every node is a gateway of every other, so when a node joins every node would publish a
// list of all nodes. That a node's address must not be announced is known from the Node
// objects.
func withoutNodes(nodes *announce.NodeIndex, in []announce.Interface) []announce.Interface {
	out := slices.Clone(in)
	for i := range out {
		out[i].Gateways = slices.DeleteFunc(slices.Clone(out[i].Gateways), func(g netip.Addr) bool { return nodes.Addresses[g] != "" })
	}
	return out
}
