package members

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"quayside.io/speaker/announce"
)

// forgetAfter is how long a claim on an address that no Service has any more is
// remembered. It is not passed on, so that it dies everywhere.
const forgetAfter = 10 * time.Minute

// state is what the members have told. Merging is commutative, associative and
// idempotent: of two claims the one that beats the other stays, of two facts
// the newer.
type state struct {
	me string

	mu     sync.Mutex
	claims map[netip.Addr]heard
	known  map[netip.Addr]struct{} // addresses that exist
	nodes  map[string]*told
	rounds map[netip.Addr]int64 // times that a claim of mine has beaten another's
}

type heard struct {
	announce.Claim
	at time.Time // heard, or last known to exist
}

type told struct {
	leaving, flags byte
	leavingVersion uint64
	ifaces         []announce.Interface
	ifacesVersion  uint64
}

func newState(me string) *state {
	return &state{me: me, claims: map[netip.Addr]heard{}, nodes: map[string]*told{}, rounds: map[netip.Addr]int64{}}
}

// merge takes one message in. It returns what is to be passed on: what of it
// was news, and claims of mine that its node, if alive, does not know yet.
func (s *state) merge(m message, now time.Time, alive bool) (pass [][]byte, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.kind == kindClaims {
		return s.mergeClaims(m, now, alive)
	}
	t := s.nodes[m.node]
	if t == nil {
		t = &told{}
		s.nodes[m.node] = t
	}
	switch {
	case m.kind == kindLeaving && m.version > t.leavingVersion:
		t.leaving, t.flags, t.leavingVersion = m.leaving, m.flags, m.version
	case m.kind == kindFacts && m.version > t.ifacesVersion:
		t.ifaces, t.ifacesVersion = m.ifaces, m.version
	default:
		return nil, false
	}
	if b, err := m.append(nil); err == nil && len(b) <= maxMessage {
		pass = [][]byte{b}
	}
	return pass, true
}

func (s *state) mergeClaims(m message, now time.Time, alive bool) (pass [][]byte, changed bool) {
	var fresh, mine []claimed
	for _, c := range m.claims {
		claim := announce.Claim{Epoch: c.epoch, Node: m.node}
		old, ok := s.claims[c.address]
		switch {
		case !ok || claim.Beats(old.Claim):
			s.claims[c.address] = heard{claim, now}
			fresh = append(fresh, c)
		case old.Node == s.me && m.node != s.me && alive:
			// Somebody who lives has not heard of my claim and may be answering:
			// say it again, to him and to the LAN.
			s.rounds[c.address]++
			mine = append(mine, claimed{c.address, old.Epoch})
		}
	}
	return append(claimMessages(m.node, fresh), claimMessages(s.me, mine)...), len(fresh)+len(mine) > 0
}

// claim enters claims of this node and returns those that are new as messages.
func (s *state) claim(want map[netip.Addr]int64, known map[netip.Addr]struct{}, now time.Time) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
	var fresh []claimed
	for a, epoch := range want {
		c := announce.Claim{Epoch: epoch, Node: s.me}
		if old, ok := s.claims[a]; !ok || c.Beats(old.Claim) {
			s.claims[a] = heard{c, now}
			fresh = append(fresh, claimed{a, epoch})
		}
	}
	for a, h := range s.claims {
		if _, ok := known[a]; ok {
			h.at = now
			s.claims[a] = h
		} else if now.Sub(h.at) > forgetAfter {
			delete(s.claims, a)
			delete(s.rounds, a)
		}
	}
	slices.SortFunc(fresh, func(a, b claimed) int { return a.address.Compare(b.address) })
	return claimMessages(s.me, fresh)
}

// tell enters what this node says about itself. What does not fit a packet is
// returned too.
func (s *state) tell(f announce.Facts, version uint64) [][]byte {
	var out [][]byte
	leaving := message{kind: kindLeaving, node: s.me, version: version, leaving: leavingBits(f), flags: flagBits(f)}
	ifaces := message{kind: kindFacts, node: s.me, version: version, ifaces: f.Interfaces}
	for _, m := range []message{leaving, ifaces} {
		s.merge(m, time.Time{}, true)
		if b, err := m.append(nil); err == nil {
			out = append(out, b)
		}
	}
	return out
}

// isLeaving reports whether a node has announced that it will go.
func (s *state) isLeaving(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node] != nil && s.nodes[node].leaving&bitLeaving != 0
}

// whole is everything worth telling to somebody who may know nothing.
func (s *state) whole() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	byNode := map[string][]claimed{}
	for a, h := range s.claims {
		if _, ok := s.known[a]; ok || s.known == nil {
			byNode[h.Node] = append(byNode[h.Node], claimed{a, h.Epoch})
		}
	}
	var out []byte
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		list := byNode[node]
		slices.SortFunc(list, func(a, b claimed) int { return a.address.Compare(b.address) })
		for _, m := range claimMessages(node, list) {
			out = appendFramed(out, m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		t := s.nodes[name]
		for _, m := range []message{
			{kind: kindLeaving, node: name, version: t.leavingVersion, leaving: t.leaving, flags: t.flags},
			{kind: kindFacts, node: name, version: t.ifacesVersion, ifaces: t.ifaces},
		} {
			if b, err := m.append(nil); err == nil && m.version > 0 {
				out = appendFramed(out, b)
			}
		}
	}
	return out
}

// fill copies what is known into v.
func (s *state) fill(v *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Claims = make(map[netip.Addr]announce.Claim, len(s.claims))
	for a, h := range s.claims {
		v.Claims[a] = h.Claim
	}
	v.Facts = make(map[string]announce.Facts, len(s.nodes))
	for name, t := range s.nodes {
		v.Facts[name] = announce.Facts{
			Interfaces: t.ifaces, Leaving: t.leaving&bitLeaving != 0, Drained: t.leaving&bitDrained != 0, Behind: t.flags&bitBehind != 0,
		}
	}
	v.Rounds = maps.Clone(s.rounds)
}
