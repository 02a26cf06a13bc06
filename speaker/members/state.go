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

// forgetAfter is how long claims on an address without a Service are remembered, and the
// facts of a node that is gone. Neither is passed on, so that it disappears everywhere.
const forgetAfter = 10 * time.Minute

// Bounds on what is remembered of addresses and nodes that do not exist.
const (
	maxClaims  = 1 << 17
	maxUnknown = 256
)

// state is the merged content of all messages. Merging is commutative, associative and
// idempotent: of two claims the one that beats the other stays, of two facts the newer.
// (But a restart of a node ends claims, see begin.)
type state struct {
	me    string
	life  uint64             // one number per process
	key   ed25519.PrivateKey // signs this node's messages
	mixed atomic.Bool        // some live members may not understand signatures

	mu     sync.Mutex
	claims map[netip.Addr]heard
	nodes  map[string]*told
	rounds map[netip.Addr]int64    // how often this node has answered claims in vain
	owed   map[netip.Addr]struct{} // for which the next round of gossip answers some
	own    packed                  // the claims of this node

	addresses map[netip.Addr]struct{} // that exist; nil: not known yet
	members   map[string]struct{}     // nodes that exist or live; nil: not known yet
}

type heard struct {
	announce.Claim
	absence         // of the address
	sealed  *sealed // as its node has signed it; nil: unsigned
	unsaid  bool    // it is this node's, and its address has come back since it was said
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
	handsOver      map[netip.Addr]announce.Claim // as said with leaving
	ifaces         []announce.Interface
	ifacesVersion  uint64

	leavingSealed, ifacesSealed *sealed
	said                        uint64 // the newest time in a message that it has signed
}

// absence is since when a node or address has not existed; zero: it exists.
type absence struct{ since time.Time }

// note records whether it exists now, and reports whether it is to be forgotten.
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
	s := &state{me: me, life: rand.Uint64(), key: key, claims: map[netip.Addr]heard{}, nodes: map[string]*told{}, rounds: map[netip.Addr]int64{}, owed: map[netip.Addr]struct{}{}}
	s.mixed.Store(true) // no other member is known yet
	return s
}

// sign signs a message of this node.
func (s *state) sign(inner []byte) *sealed {
	return seal(s.key, s.me, uint64(time.Now().UnixMicro()), inner)
}

// post returns messages of this node as they are sent: signed and, while mixed, unsigned,
// too.
func (s *state) post(inner [][]byte) (out [][]byte) {
	for _, b := range inner {
		out = append(out, s.sign(b).bytes)
		if s.mixed.Load() {
			out = append(out, b)
		}
	}
	return out
}

// isNews reports whether merging a message would change the state or cause an answer.
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
		return !ok || claim.Beats(old.Claim) || alive && s.isInVain(c, m.node) && !s.owes(c.address) || old.Claim == claim && m.sealed.replaces(old.sealed)
	})
}

// proves reports whether a message is the signed form of one that is known unsigned.
func (m *message) proves(version uint64, known *sealed) bool {
	return m.version == version && m.sealed != nil && known == nil
}

// existing returns those of claims whose addresses exist.
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

// replaces reports whether a message that was signed later may replace the other.
func (s *sealed) replaces(other *sealed) bool {
	return s != nil && (other == nil || s.said > other.said)
}

// merge merges one message, and returns the part of it that was new as messages to gossip.
func (s *state) merge(m message, alive bool) (pass [][]byte, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.kind == kindClaims {
		return s.mergeClaims(m, alive)
	}
	t := s.nodes[m.node]
	if t == nil {
		if !s.isMember(m.node) && len(s.nodes) >= len(s.members)+maxUnknown {
			return nil, false // the node names may be forged
		}
		t = &told{}
		s.nodes[m.node] = t
	}
	switch {
	case m.kind == kindLeaving && m.version > t.leavingVersion:
		t.leaving, t.flags, t.handsOver, t.leavingVersion, t.leavingSealed = m.leaving, m.flags, m.handsOver, m.version, m.sealed
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

// heard records the time in a node's newest signed message.
func (t *told) heard(b *sealed) {
	if b != nil {
		t.said = max(t.said, b.said)
	}
}

// relay returns a message as it is passed on: as its node has signed it and, while mixed,
// unsigned, too.
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

// begin records that a node's speaker has restarted. The new process does not know the
// claims of the one before unless others pass them on, and those on addresses without a
// Service they do not. If such a claim stayed, a Service that gets the address again would
// be left by all to a node that does not know of it, until the next push/pull exchange.
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
	var fresh []claimed
	for _, c := range m.claims {
		claim := announce.Claim{Epoch: c.epoch, Node: m.node}
		old, ok := s.claims[c.address]
		switch {
		case !ok && !s.exists(c.address) && (len(s.claims) >= maxClaims || s.isPast(m)):
			// The addresses may be forged; or the message is old and was kept for another
			// address in it, and this one is gone.
		case !ok || claim.Beats(old.Claim):
			s.claims[c.address] = heard{Claim: claim, absence: old.absence, sealed: m.sealed}
			fresh = append(fresh, c)
		case old.Claim == claim && m.sealed.replaces(old.sealed):
			old.sealed = m.sealed
			s.claims[c.address] = old
		case alive && s.isInVain(c, m.node):
			s.owed[c.address] = struct{}{}
		}
	}
	if len(fresh) > 0 {
		pass = s.relayClaims(m, fresh)
	}
	return pass, len(fresh) > 0
}

// isPast reports whether a signed message is so old that its node may since have given up
// an address in it.
func (s *state) isPast(m message) bool {
	t := s.nodes[m.node]
	return t != nil && m.sealed != nil && t.said > m.sealed.said+uint64(forgetAfter.Microseconds())
}

// relayClaims returns the fresh claims of a message as they are passed on. A signature
// covers all of them, and a message that came by TCP may be too long for a packet.
func (s *state) relayClaims(m message, fresh []claimed) (out [][]byte) {
	if m.sealed != nil && len(m.sealed.bytes) <= maxMessage {
		out = append(out, m.sealed.bytes)
	}
	if m.sealed == nil || s.mixed.Load() {
		out = append(out, claimMessages(m.node, fresh)...)
	}
	return out
}

// know records which addresses and nodes exist, and drops what is to be forgotten of
// others.
func (s *state) know(addresses map[netip.Addr]struct{}, members map[string]struct{}, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses, s.members = addresses, members
	for a, h := range s.claims {
		wasAway := !h.since.IsZero()
		if h.note(s.exists(a), now) {
			delete(s.claims, a)
			delete(s.rounds, a)
			continue
		}
		h.unsaid = h.unsaid || wasAway && h.since.IsZero() && h.Node == s.me
		s.claims[a] = h
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

// remembers reports whether anything is remembered of a node.
func (s *state) remembers(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node] != nil
}

// hasHeardFrom reports whether both messages of each node are known that it begins with.
func (s *state) hasHeardFrom(nodes map[string]struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range nodes {
		if t := s.nodes[name]; t == nil || t.leavingVersion == 0 || t.ifacesVersion == 0 {
			return false
		}
	}
	return true
}

// claim records the claims of this node and returns messages with the new ones, and with
// those on addresses that have come back: claims on addresses that do not exist are not
// passed on, so that another member may know a better one, or only a worse.
func (s *state) claim(want map[netip.Addr]int64) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh []claimed
	for a, epoch := range want {
		c := announce.Claim{Epoch: epoch, Node: s.me}
		old, ok := s.claims[a]
		switch {
		case !ok || c.Beats(old.Claim):
			s.claims[a] = heard{Claim: c, absence: old.absence}
		case old.Claim == c && old.unsaid:
			old.unsaid = false
			s.claims[a] = old
		default:
			continue
		}
		fresh = append(fresh, claimed{a, epoch})
	}
	slices.SortFunc(fresh, func(a, b claimed) int { return a.address.Compare(b.address) })
	return s.post(claimMessages(s.me, fresh))
}

// mine returns what this node says of itself, and its valid claims as one message, of any
// length; while mixed, unsigned, too.
func (s *state) mine() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, m := s.factsOf(s.me), message{kind: kindClaims, node: s.me, claims: s.standing()}
	if len(m.claims) == 0 {
		return out
	}
	b, _ := m.append(nil) // only facts can fail
	return append(out, s.post([][]byte{b})...)
}

// standing returns the claims of this node that no other has beaten, by address.
func (s *state) standing() (claims []claimed) {
	for a, h := range s.claims {
		if h.Node == s.me && s.exists(a) {
			claims = append(claims, claimed{a, h.Epoch})
		}
	}
	slices.SortFunc(claims, func(a, b claimed) int { return a.address.Compare(b.address) })
	return claims
}

// tell records the facts of this node and returns the messages with them, of which some
// may not fit a packet.
func (s *state) tell(f announce.Facts, version uint64) [][]byte {
	var out [][]byte
	leaving := message{kind: kindLeaving, node: s.me, version: version, leaving: leavingBits(f), flags: flagBits(f), life: s.life, handsOver: f.HandsOver}
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

// isLeaving reports whether a node has announced that it is leaving.
func (s *state) isLeaving(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node] != nil && s.nodes[node].leaving&bitLeaving != 0
}

// whole returns the whole state, for a member that may know nothing. The life of each
// node comes first, since a new one removes claims.
func (s *state) whole() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		if !s.isMember(name) {
			continue
		}
		for _, b := range s.factsOf(name) {
			out = appendFramed(out, b)
		}
	}
	return s.appendClaims(out)
}

// factsOf returns what a node has said of itself, as messages of any length.
func (s *state) factsOf(name string) (out [][]byte) {
	t := s.nodes[name]
	if t == nil {
		return nil
	}
	for _, m := range []message{
		{kind: kindLeaving, node: name, version: t.leavingVersion, leaving: t.leaving, flags: t.flags, life: t.life, handsOver: t.handsOver, sealed: t.leavingSealed},
		{kind: kindFacts, node: name, version: t.ifacesVersion, ifaces: t.ifaces, sealed: t.ifacesSealed},
	} {
		if m.version > 0 {
			out = append(out, s.relay(&m)...)
		}
	}
	return out
}

// appendClaims appends the best claims: each signed message once, with whatever other
// claims it has.
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
