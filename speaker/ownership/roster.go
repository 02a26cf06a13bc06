package ownership

import (
	"net/netip"

	"quayside.io/speaker/announce"
)

// roster is what is read of the Nodes alone. It is read again when they have changed:
// that is rare, and there may be thousands.
type roster struct {
	*announce.Roll
	self  netip.Addr // this node's first InternalIP
	peers []Peer     // the others, by theirs
}

// nodes are those of this moment.
func (m *Machine) nodes() *roster {
	roll := m.roster.Roll.Of(m.world.Cluster)
	if roll.Says(m.roster.Roll) {
		m.roster.Roll = roll
		return &m.roster
	}
	m.roster = roster{Roll: roll}
	for _, n := range roll.Nodes {
		for _, a := range n.Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || a.Type != "InternalIP" {
				continue
			}
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
