package members

import (
	"maps"
	"net/netip"

	"quayside.io/speaker/announce"
)

// fill copies the state into v, and reuses maps of the view before that are unchanged.
func (s *state) fill(v, before *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.Claims = before.Claims; v.Claims == nil || !isCopy(v.Claims, s.claims, func(c announce.Claim, h heard) bool { return c == h.Claim }) {
		v.Claims = make(map[netip.Addr]announce.Claim, len(s.claims))
		for a, h := range s.claims {
			v.Claims[a] = h.Claim
		}
	}
	if v.Facts = before.Facts; v.Facts == nil || !isCopy(v.Facts, s.nodes, func(f announce.Facts, t *told) bool { return t.says(&f) }) {
		v.Facts = make(map[string]announce.Facts, len(s.nodes))
		for name, t := range s.nodes {
			v.Facts[name] = t.facts()
		}
	}
	v.Rounds = maps.Clone(s.rounds)
}

// isCopy reports whether two maps have the same content.
func isCopy[K comparable, A, B any](of map[K]A, from map[K]B, same func(A, B) bool) bool {
	if len(of) != len(from) {
		return false
	}
	for k, a := range of {
		if b, exists := from[k]; !exists || !same(a, b) {
			return false
		}
	}
	return true
}

func (t *told) facts() announce.Facts {
	return announce.Facts{
		Interfaces: t.ifaces, Leaving: t.leaving&bitLeaving != 0, Drained: t.leaving&bitDrained != 0, Behind: t.flags&bitBehind != 0,
		HandsOver: t.handsOver,
	}
}

// says reports whether f equals t.facts(). Lists of interfaces are immutable, and so are
// hand-overs: those at the same address in memory are equal.
func (t *told) says(f *announce.Facts) bool {
	is := t.facts()
	return f.Leaving == is.Leaving && f.Drained == is.Drained && f.Behind == is.Behind && announce.SameMap(f.HandsOver, is.HandsOver) &&
		len(f.Interfaces) == len(is.Interfaces) && (f.Interfaces == nil) == (is.Interfaces == nil) &&
		(len(is.Interfaces) == 0 || &f.Interfaces[0] == &is.Interfaces[0])
}
