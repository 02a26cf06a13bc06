package assign

import (
	"fmt"
	"net/netip"
	"slices"

	"quayside.io/lbpool"
)

// swap lets Services that ask for each other's addresses have them, as where blue and green
// change places: each keeps what it has until it can have what it asks for, so none of them could
// begin. The youngest of such a circle loses its own; the next plans move the others, and it last.
func (w *work) swap() {
	if !slices.ContainsFunc(w.sorted, (*consumer).waitsByName) {
		return // as mostly
	}
	s := swapping{w: w, waits: map[*lbpool.Holder]*consumer{}, next: map[netip.Addr]*consumer{}}
	s.gather()
	s.settle()
	for _, c := range slices.Backward(s.sorted) {
		if s.waits[&c.holder] != nil {
			s.begin(s.circle(c))
			return
		}
	}
}

// swapping is who would have what it asks for once others have it.
type swapping struct {
	w      *work
	sorted []*consumer
	waits  map[*lbpool.Holder]*consumer // those of sorted that surely would
	next   map[netip.Addr]*consumer     // the oldest that asks for what somebody else holds
}

// gather finds who waits for an address that it asks for by name, as long as nobody older waits for
// any: that one takes what comes free, so that nothing is sure.
func (s *swapping) gather() {
	for _, c := range s.w.sorted {
		if c.waitsByName() {
			s.add(c)
		}
		if s.w.takesAny(c) {
			return
		}
	}
}

// waitsByName reports whether a Service asks for an address that somebody else has.
func (c *consumer) waitsByName() bool { return c.trouble.denial().reason == ReasonAddressInUse }

// add enters one who waits.
func (s *swapping) add(c *consumer) {
	s.sorted = append(s.sorted, c)
	wants := c.request().wants
	for _, a := range wants {
		if s.next[a] == nil {
			s.next[a] = c
		}
	}
	if !c.requires || len(c.missing(wants)) == 0 {
		s.waits[&c.holder] = c
	}
}

// takesAny reports whether a Service takes an address that comes free although it does not ask for
// it by name: it has none, or none of a family that its pool has.
func (w *work) takesAny(c *consumer) bool {
	if refused := c.trouble.denial().reason; refused == ReasonPoolExhausted || refused == ReasonPoolResting {
		return true
	}
	wants, own := c.request().wants, c.holds
	if len(own) == 0 {
		own = wants
	}
	if !c.managed || c.foreign || c.dying || len(own) == 0 {
		return false
	}
	home := w.pools.poolOf(own[0])
	return home != nil && slices.ContainsFunc(c.missing(c.holds), func(f lbpool.Family) bool {
		return slices.Contains(c.missing(wants), f) && w.pools.poolIndex.Has(home.index, f)
	})
}

// settle leaves those in waits who get all that they ask for once all of them have moved. Whoever
// does not takes the next of what it holds out with it.
func (s *swapping) settle() {
	look := slices.Clone(s.sorted)
	for len(look) > 0 {
		c := look[len(look)-1]
		look = look[:len(look)-1]
		if s.waits[&c.holder] == nil || s.isSure(c) {
			continue
		}
		delete(s.waits, &c.holder)
		for _, a := range c.holds {
			if next := s.next[a]; next != nil {
				look = append(look, next)
			}
		}
	}
}

// isSure reports whether c gets each address that it asks for: it is free, or c is the next to have
// it when its only holder moves.
func (s *swapping) isSure(c *consumer) bool {
	for _, a := range c.request().wants {
		switch s.w.refuse(c, a).reason {
		case "":
		case ReasonAddressInUse:
			if s.next[a] != c || s.mover(a) == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// mover returns the only holder of an address, if it waits and would leave that one; else nil.
func (s *swapping) mover(a netip.Addr) (only *consumer) {
	for o := range s.w.pools.allocations.Holders(a) {
		c := s.waits[o]
		if only != nil || c == nil || !slices.Contains(c.holds, a) || !c.wouldLeave(a) {
			return nil
		}
		only = c
	}
	return only
}

// wouldLeave reports whether c, which holds an address, asks for another one of that family.
func (c *consumer) wouldLeave(a netip.Addr) bool {
	wants := c.request().wants
	return !slices.Contains(wants, a) && slices.ContainsFunc(wants, func(b netip.Addr) bool { return lbpool.FamilyOf(a) == lbpool.FamilyOf(b) })
}

// circle returns those who wait for each other, whom c waits for, or is one of.
func (s *swapping) circle(c *consumer) (circle []*consumer) {
	seen := map[*consumer]bool{}
	for !seen[c] {
		circle, seen[c] = append(circle, c), true
		for _, a := range c.request().wants {
			if o := s.mover(a); o != nil {
				c = o
				break
			}
		}
	}
	return circle[slices.Index(circle, c):]
}

// begin takes from the youngest of a circle what it does not ask for, of the families that it asks
// for.
func (s *swapping) begin(circle []*consumer) {
	c := slices.MaxFunc(circle, func(a, b *consumer) int { return a.seniority().compare(b.seniority()) })
	c.holds = slices.DeleteFunc(c.holds, func(a netip.Addr) bool {
		goes := c.wouldLeave(a)
		if goes {
			c.lose(a, fmt.Sprintf("the Service changes places with those who hold what it asks for, %s, and ask for what it has", join(c.request().wants)))
		}
		return goes
	})
}
