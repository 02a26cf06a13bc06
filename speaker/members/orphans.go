package members

import (
	"math/rand/v2"
	"net/netip"

	"quayside.io/speaker/announce"
)

// correctors is about how many members correct a claim that is too low.
const correctors = 4

// orphaned returns the addresses that a live member claims although the better claim of one
// that is gone stands, which only others can tell it. If nobody did, that member would keep
// the address until the other is back, which would then have it at once. In a large fleet
// a few members are enough.
func (m *Members) orphaned(msg message, alive bool) (addresses []netip.Addr) {
	if !alive || msg.kind != kindClaims || msg.node == m.opts.NodeName || rand.IntN(max(1, m.numAlive())) >= correctors {
		return nil
	}
	for node, claims := range m.state.outdone(msg) {
		if !m.isAlive(node) {
			addresses = append(addresses, claims...)
		}
	}
	return addresses
}

// outdone returns the claims that beat those in a message, and are of neither its node nor
// this one, by node, but for those to be repeated already.
func (s *state) outdone(m message) map[string][]netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out map[string][]netip.Addr
	for _, c := range m.claims {
		old, ok := s.claims[c.address]
		if !ok || old.Node == s.me || old.Node == m.node || s.owes(c.address) || !s.exists(c.address) || !old.Claim.Beats(announce.Claim{Epoch: c.epoch, Node: m.node}) {
			continue
		}
		if out == nil {
			out = map[string][]netip.Addr{}
		}
		out[old.Node] = append(out[old.Node], c.address)
	}
	return out
}

// repeat returns the best claims on addresses as messages to gossip. s.mu is held.
func (s *state) repeat(addresses []netip.Addr) (out [][]byte) {
	plain, signed := map[string][]claimed{}, map[*sealed]message{}
	for _, a := range addresses {
		h := s.claims[a]
		if h.sealed == nil {
			plain[h.Node] = append(plain[h.Node], claimed{a, h.Epoch})
			continue
		}
		m := signed[h.sealed]
		m.node, m.sealed, m.claims = h.Node, h.sealed, append(m.claims, claimed{a, h.Epoch})
		signed[h.sealed] = m
	}
	for node, claims := range plain {
		out = append(out, claimMessages(node, claims)...)
	}
	for _, m := range signed {
		out = append(out, s.relayClaims(m, m.claims)...)
	}
	return out
}
