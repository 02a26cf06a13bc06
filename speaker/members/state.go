package members

import (
	"crypto/ed25519"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
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
	me    string
	life  uint64             // one number per process
	key   ed25519.PrivateKey // of this process, which signs what it says of itself
	mixed atomic.Bool        // members live that may not understand signatures

	mu     sync.Mutex
	claims map[netip.Addr]heard
	nodes  map[string]*told
	rounds map[netip.Addr]int64 // times that a claim of mine has beaten another's
	own    packed               // claims of mine

	addresses map[netip.Addr]struct{} // that exist; nil: not known yet
	members   map[string]struct{}     // nodes that exist or live; nil: not known yet
}

type heard struct {
	announce.Claim
	absence         // of the address
	sealed  *sealed // as its node signed it; nil: it did not
}

// packed are claims of this node, and the signed messages that hold them.
type packed struct {
	claims   []claimed
	messages [][]byte
}

type told struct {
	absence        // of the node
	leaving, flags byte
	leavingVersion uint64
	life           uint64
	ifaces         []announce.Interface
	ifacesVersion  uint64

	leavingSealed, ifacesSealed *sealed
	said                        uint64 // the last time at which it signed anything
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
	_, key, _ := ed25519.GenerateKey(nil) // it reads from crypto/rand, which never fails
	s := &state{me: me, life: rand.Uint64(), key: key, claims: map[netip.Addr]heard{}, nodes: map[string]*told{}, rounds: map[netip.Addr]int64{}}
	s.mixed.Store(true) // nobody has been met
	return s
}

// sign signs a message of this node.
func (s *state) sign(inner []byte) *sealed {
	return seal(s.key, s.me, uint64(time.Now().UnixMicro()), inner)
}

// post are messages of this node as they are sent: signed, and as they are for those
// who do not understand that.
func (s *state) post(inner [][]byte) (out [][]byte) {
	for _, b := range inner {
		out = append(out, s.sign(b).bytes)
		if s.mixed.Load() {
			out = append(out, b)
		}
	}
	return out
}

// isNews reports whether a message would change anything, or be answered.
func (s *state) isNews(m message, alive bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.nodes[m.node]
	switch m.kind {
	case kindLeaving:
		return t == nil || m.version > t.leavingVersion || m.proves(t.leavingVersion, t.leavingSealed)
	case kindFacts:
		return t == nil || m.version > t.ifacesVersion || m.proves(t.ifacesVersion, t.ifacesSealed)
	}
	return slices.ContainsFunc(m.claims, func(c claimed) bool {
		old, ok := s.claims[c.address]
		claim := announce.Claim{Epoch: c.epoch, Node: m.node}
		return !ok || claim.Beats(old.Claim) || old.Node == s.me && m.node != s.me && alive || old.Claim == claim && m.sealed.replaces(old.sealed)
	})
}

// proves reports whether a message is the signed form of what is known unsigned.
func (m *message) proves(version uint64, known *sealed) bool {
	return m.version == version && m.sealed != nil && known == nil
}

// existing are those of claims that are on addresses which exist.
func (s *state) existing(claims []claimed) (out []claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		if s.exists(c.address) {
			out = append(out, c)
		}
	}
	return out
}

// replaces reports whether a message signed later may stand for the other.
func (s *sealed) replaces(other *sealed) bool {
	return s != nil && (other == nil || s.said > other.said)
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
		t.leaving, t.flags, t.leavingVersion, t.leavingSealed = m.leaving, m.flags, m.version, m.sealed
		s.begin(t, m)
	case m.kind == kindFacts && m.version > t.ifacesVersion:
		t.ifaces, t.ifacesVersion, t.ifacesSealed = m.ifaces, m.version, m.sealed
	case m.kind == kindLeaving && m.proves(t.leavingVersion, t.leavingSealed):
		t.leavingSealed = m.sealed
		return nil, false
	case m.kind == kindFacts && m.proves(t.ifacesVersion, t.ifacesSealed):
		t.ifacesSealed = m.sealed
		return nil, false
	default:
		return nil, false
	}
	t.heard(m.sealed)
	return slices.DeleteFunc(s.relay(&m), func(b []byte) bool { return len(b) > maxMessage }), true
}

// heard notes when a node last signed something.
func (t *told) heard(b *sealed) {
	if b != nil {
		t.said = max(t.said, b.said)
	}
}

// relay is a message as it is passed on: as its node signed it, and as those know it
// who do not understand that.
func (s *state) relay(m *message) (out [][]byte) {
	if m.sealed != nil {
		out = append(out, m.sealed.bytes)
	}
	if m.sealed == nil || s.mixed.Load() {
		if b, err := m.append(nil); err == nil {
			out = append(out, b)
		}
	}
	return out
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
	if t := s.nodes[m.node]; t != nil {
		t.heard(m.sealed)
	}
	var fresh, mine []claimed
	for _, c := range m.claims {
		claim := announce.Claim{Epoch: c.epoch, Node: m.node}
		old, ok := s.claims[c.address]
		switch {
		case !ok && !s.exists(c.address) && (len(s.claims) >= maxClaims || s.isPast(m)):
			// Somebody invents addresses; or the message is old, is kept for another
			// address, and this one is gone.
		case !ok || claim.Beats(old.Claim):
			s.claims[c.address] = heard{claim, old.absence, m.sealed}
			fresh = append(fresh, c)
		case old.Claim == claim && m.sealed.replaces(old.sealed):
			old.sealed = m.sealed
			s.claims[c.address] = old
		case old.Node == s.me && m.node != s.me && alive:
			// Somebody who lives has not heard of my claim and may be answering:
			// say it again, to him and to the LAN.
			s.rounds[c.address]++
			mine = append(mine, claimed{c.address, old.Epoch})
		}
	}
	if len(fresh) > 0 {
		pass = s.relayClaims(m, fresh)
	}
	return append(pass, s.post(claimMessages(s.me, mine))...), len(fresh)+len(mine) > 0
}

// contested are the addresses of this node that somebody else claims in vain.
func (s *state) contested(m message) (addresses []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range m.claims {
		if old := s.claims[c.address]; old.Node == s.me && m.node != s.me && old.Claim.Beats(announce.Claim{Epoch: c.epoch, Node: m.node}) {
			addresses = append(addresses, c.address)
		}
	}
	return addresses
}

// isPast reports whether a signed message is so old that its node may have said
// since that an address is gone.
func (s *state) isPast(m message) bool {
	t := s.nodes[m.node]
	return t != nil && m.sealed != nil && t.said > m.sealed.said+uint64(forgetAfter.Microseconds())
}

// relayClaims passes on the fresh ones among the claims of a message. A signature
// is over all of them, and too long for a packet what was sent by itself.
func (s *state) relayClaims(m message, fresh []claimed) (out [][]byte) {
	if m.sealed != nil && len(m.sealed.bytes) <= maxMessage {
		out = append(out, m.sealed.bytes)
	}
	if m.sealed == nil || s.mixed.Load() {
		out = append(out, claimMessages(m.node, fresh)...)
	}
	return out
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
			s.claims[a] = heard{c, old.absence, nil}
			fresh = append(fresh, claimed{a, epoch})
		}
	}
	slices.SortFunc(fresh, func(a, b claimed) int { return a.address.Compare(b.address) })
	return s.post(claimMessages(s.me, fresh))
}

// mine are the claims of this node that stand, as one message of any length, and once
// more for those who do not understand signatures.
func (s *state) mine() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := message{kind: kindClaims, node: s.me, claims: s.standing()}
	if len(m.claims) == 0 {
		return nil
	}
	b, _ := m.append(nil) // only facts can fail
	return s.post([][]byte{b})
}

// standing are the claims of this node that stand, in order.
func (s *state) standing() (claims []claimed) {
	for a, h := range s.claims {
		if h.Node == s.me && s.exists(a) {
			claims = append(claims, claimed{a, h.Epoch})
		}
	}
	slices.SortFunc(claims, func(a, b claimed) int { return a.address.Compare(b.address) })
	return claims
}

// tell enters what this node says about itself. What does not fit a packet is
// returned too.
func (s *state) tell(f announce.Facts, version uint64) [][]byte {
	var out [][]byte
	leaving := message{kind: kindLeaving, node: s.me, version: version, leaving: leavingBits(f), flags: flagBits(f), life: s.life}
	ifaces := message{kind: kindFacts, node: s.me, version: version, ifaces: f.Interfaces[:min(len(f.Interfaces), maxInterfaces)]}
	for _, m := range []message{leaving, ifaces} {
		if b, err := m.append(nil); err == nil {
			m.sealed = s.sign(b)
			out = append(out, s.relay(&m)...)
		}
		s.merge(m, true)
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
			{kind: kindLeaving, node: name, version: t.leavingVersion, leaving: t.leaving, flags: t.flags, life: t.life, sealed: t.leavingSealed},
			{kind: kindFacts, node: name, version: t.ifacesVersion, ifaces: t.ifaces, sealed: t.ifacesSealed},
		} {
			if m.version == 0 {
				continue
			}
			for _, b := range s.relay(&m) {
				out = appendFramed(out, b)
			}
		}
	}
	return s.appendClaims(out)
}

// appendClaims appends the claims that stand: signed messages once each, with
// whatever else is in them.
func (s *state) appendClaims(out []byte) []byte {
	if standing := s.standing(); !slices.Equal(standing, s.own.claims) {
		s.own = packed{claims: standing}
		for _, b := range claimMessages(s.me, standing) {
			s.own.messages = append(s.own.messages, s.sign(b).bytes)
		}
	}
	for _, b := range s.own.messages {
		out = appendFramed(out, b)
	}
	signed, plain := map[*sealed]struct{}{}, map[string][]claimed{}
	for a, h := range s.claims {
		if !s.exists(a) {
			continue
		}
		if h.Node != s.me && h.sealed != nil {
			signed[h.sealed] = struct{}{}
		}
		if h.Node != s.me && h.sealed == nil || s.mixed.Load() {
			plain[h.Node] = append(plain[h.Node], claimed{a, h.Epoch})
		}
	}
	for b := range signed {
		out = appendFramed(out, b.bytes)
	}
	for _, node := range slices.Sorted(maps.Keys(plain)) {
		list := plain[node]
		slices.SortFunc(list, func(a, b claimed) int { return a.address.Compare(b.address) })
		for _, m := range claimMessages(node, list) {
			out = appendFramed(out, m)
		}
	}
	return out
}
