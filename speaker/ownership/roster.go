package ownership

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/speaker/announce"
)

// roster is what is read from the Nodes alone. It is read again only when they have
// changed, which is rare, and there may be thousands.
type roster struct {
	*announce.NodeIndex
	self  netip.Addr // this node's first InternalIP
	peers []Peer     // the other nodes, each with its first InternalIP
}

// nodes returns the current roster.
func (m *Machine) nodes() *roster {
	index := m.roster.NodeIndex.Of(m.world.Cluster)
	if index.SameAs(m.roster.NodeIndex) {
		m.roster.NodeIndex = index
		return &m.roster
	}
	m.roster = roster{NodeIndex: index}
	for _, n := range index.Nodes {
		for ip := range loadbalancer.NodeAddresses(n, corev1.NodeInternalIP) {
			if n.Name == m.opts.Node {
				m.roster.self = ip
			} else {
				m.roster.peers = append(m.roster.peers, Peer{n.Name, ip})
			}
			break
		}
	}
	return &m.roster
}
