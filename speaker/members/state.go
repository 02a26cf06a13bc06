package members

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"quayside.io/speaker/announce"
)

// forgetAfter is how long a claim on an address that no Service has any more is
// remembered, and what a node said that is gone. Neither is passed on, so that
// it dies everywhere.
const forgetAfter = 10 * time.Minute

// Bounds on what is remembered beyond what exists.
const (
	maxClaims    = 1 << 17
	maxStrangers = 256
)

// state is what the members have said. Merging is commutative, associative and
// idempotent: of two claims the one that beats the other stays, of two facts
// the newer. (But a new life of a node ends claims, see begin.)
type state struct {
	me   string
	life uint64 // one number per process

	mu     sync.Mutex
	claims map[netip.Addr]heard
	nodes  map[string]*told
	rounds map[netip.Addr]int64 // times that a claim of mine has beaten another's

	addresses map[netip.Addr]struct{} // that exist; nil: not known yet
	members   map[string]struct{}     // nodes that exist or live; nil: not known yet
}

type heard struct {
	announce.Claim
	absence // of the address
}

type told struct {
	absence        // of the node
	leaving, flags byte
	leavingVersion uint64
	life           uint64
	ifaces         []announce.Interface
	ifacesVersion  uint64
}

// absence is since when something does not exist; zero: it does.
type absence struct{ since time.Time }

// note notes whether it exists, and reports whether it is to be forgotten.
func (a *absence) note(exists bool, now time.Time) (forget bool) {
	if exists {
		a.since = time.Time{}
		return false
	}
	if a.since.IsZero() {
		a.since = now
	}
	return now.Sub(a.since) > forgetAfter
}

func newState(me string) *state {
	return &state{me: me, life: rand.Uint64(), claims: map[netip.Addr]heard{}, nodes: map[string]*told{}, rounds: map[netip.Addr]int64{}}
}

// merge takes one message in. It returns what is to be passed on: what of it
// was news, and claims of mine that its node, if alive, does not know yet.
func (s *state) merge(m message, alive bool) (pass [][]byte, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.kind == kindClaims {
		return s.mergeClaims(m, alive)
	}
	t := s.nodes[m.node]
	if t == nil {
		if !s.isMember(m.node) && len(s.nodes) >= len(s.members)+maxStrangers {
			return nil, false // somebody invents nodes
		}
		t = &told{}
		s.nodes[m.node] = t
	}
	switch {
	case m.kind == kindLeaving && m.version > t.leavingVersion:
		t.leaving, t.flags, t.leavingVersion = m.leaving, m.flags, m.version
		s.begin(t, m)
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

// begin notes a new life of a node. It knows nothing of what its former one claimed
// unless others pass that on, and of addresses that no Service has they do not. If
// such a claim stood, a Service that gets its address again would be left by all to
// a node that does not know, until states are next exchanged.
func (s *state) begin(t *told, m message) {
	if m.life == 0 || m.life == t.life {
		return
	}
	if t.life != 0 {
		maps.DeleteFunc(s.claims, func(a netip.Addr, h heard) bool { return h.Node == m.node && !s.exists(a) })
	}
	t.life = m.life
}

func (s *state) mergeClaims(m message, alive bool) (pass [][]byte, changed bool) {
	var fresh, mine []claimed
	for _, c := range m.claims {
		claim := announce.Claim{Epoch: c.epoch, Node: m.node}
		old, ok := s.claims[c.address]
		switch {
		case !ok && !s.exists(c.address) && len(s.claims) >= maxClaims: // somebody invents addresses
		case !ok || claim.Beats(old.Claim):
			s.claims[c.address] = heard{claim, old.absence}
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

// know enters what exists, and forgets what others said of what does not.
func (s *state) know(addresses map[netip.Addr]struct{}, members map[string]struct{}, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses, s.members = addresses, members
	for a, h := range s.claims {
		if h.note(s.exists(a), now) {
			delete(s.claims, a)
			delete(s.rounds, a)
		} else {
			s.claims[a] = h
		}
	}
	maps.DeleteFunc(s.nodes, func(name string, t *told) bool { return t.note(s.isMember(name), now) })
}

func (s *state) exists(a netip.Addr) bool {
	_, ok := s.addresses[a]
	return ok || s.addresses == nil
}

func (s *state) isMember(node string) bool {
	_, ok := s.members[node]
	return ok || s.members == nil
}

// remembers reports whether a node has said something that is not forgotten.
func (s *state) remembers(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node] != nil
}

// claim enters claims of this node and returns those that are new as messages.
func (s *state) claim(want map[netip.Addr]int64) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh []claimed
	for a, epoch := range want {
		c := announce.Claim{Epoch: epoch, Node: s.me}
		if old, ok := s.claims[a]; !ok || c.Beats(old.Claim) {
			s.claims[a] = heard{c, old.absence}
			fresh = append(fresh, claimed{a, epoch})
		}
	}
	slices.SortFunc(fresh, func(a, b claimed) int { return a.address.Compare(b.address) })
	return claimMessages(s.me, fresh)
}

// mine are the claims of this node that stand, as one message of any length; nil:
// there are none.
func (s *state) mine() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := message{kind: kindClaims, node: s.me}
	for a, h := range s.claims {
		if h.Node == s.me && s.exists(a) {
			m.claims = append(m.claims, claimed{a, h.Epoch})
		}
	}
	if len(m.claims) == 0 {
		return nil
	}
	b, _ := m.append(nil) // only facts can fail
	return b
}

// tell enters what this node says about itself. What does not fit a packet is
// returned too.
func (s *state) tell(f announce.Facts, version uint64) [][]byte {
	var out [][]byte
	leaving := message{kind: kindLeaving, node: s.me, version: version, leaving: leavingBits(f), flags: flagBits(f), life: s.life}
	ifaces := message{kind: kindFacts, node: s.me, version: version, ifaces: f.Interfaces[:min(len(f.Interfaces), maxInterfaces)]}
	for _, m := range []message{leaving, ifaces} {
		s.merge(m, true)
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

// whole is everything that a member which may know nothing should learn: of each
// node whether it began anew first, since that takes claims away.
func (s *state) whole() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		t := s.nodes[name]
		if !s.isMember(name) {
			continue
		}
		for _, m := range []message{
			{kind: kindLeaving, node: name, version: t.leavingVersion, leaving: t.leaving, flags: t.flags, life: t.life},
			{kind: kindFacts, node: name, version: t.ifacesVersion, ifaces: t.ifaces},
		} {
			if b, err := m.append(nil); err == nil && m.version > 0 {
				out = appendFramed(out, b)
			}
		}
	}
	byNode := map[string][]claimed{}
	for a, h := range s.claims {
		if s.exists(a) {
			byNode[h.Node] = append(byNode[h.Node], claimed{a, h.Epoch})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		list := byNode[node]
		slices.SortFunc(list, func(a, b claimed) int { return a.address.Compare(b.address) })
		for _, m := range claimMessages(node, list) {
			out = appendFramed(out, m)
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
