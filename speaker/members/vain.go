package members

import (
	"net/netip"

	"quayside.io/speaker/announce"
)

// A live member that claims in vain what this node has, or one that is gone, has not heard of
// the better claim and may answer for the address. It is told; and where this node has the
// address, so is the LAN, whose neighbours may have learned another's hardware address.
//
// Whatever is claimed in vain between two rounds of gossip gets one answer. A claim arrives
// in dozens of copies, and so does each answer: were every copy answered, two nodes that
// claim an address by turns would have so much to read, to verify and to sign that they hear
// the truth seconds later.

// isInVain reports whether node claims what this node has, by a claim that is no better.
// s.mu is held.
func (s *state) isInVain(c claimed, node string) bool {
	old := s.claims[c.address]
	return old.Node == s.me && node != s.me && !announce.Claim{Epoch: c.epoch, Node: node}.Beats(old.Claim)
}

// owes reports whether the next round answers for an address. s.mu is held.
func (s *state) owes(a netip.Addr) bool {
	_, owed := s.owed[a]
	return owed
}

// contested returns the addresses that a message claims in vain and of which that is news.
func (s *state) contested(m message) (addresses []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range m.claims {
		if s.isInVain(c, m.node) && !s.owes(c.address) {
			addresses = append(addresses, c.address)
		}
	}
	return addresses
}

// owe has the next round answer for addresses, too, and reports whether it has anything to
// answer for.
func (s *state) owe(addresses []netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range addresses {
		s.owed[a] = struct{}{}
	}
	return len(s.owed) > 0
}

// answers returns the best claims on what was claimed in vain since the last round, as
// messages to gossip, and counts those of this node.
func (s *state) answers() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var mine []claimed
	var others []netip.Addr
	for a := range s.owed {
		switch have, ok := s.claims[a]; {
		case ok && have.Node == s.me:
			s.rounds[a]++
			mine = append(mine, claimed{a, have.Epoch})
		case ok:
			others = append(others, a)
		}
	}
	clear(s.owed)
	return append(s.post(claimMessages(s.me, mine)), s.repeat(others)...)
}

// answer tells the others, and whoever announces on the LAN.
func (m *Members) answer() {
	if messages := m.state.answers(); len(messages) > 0 {
		m.broadcast(messages)
		m.changed()
	}
}
