package lbpool

import (
	"math/bits"
	"net/netip"
	"strings"
)

// A sharedList is the addresses of one freeList that somebody shares under one
// key and backend, in the order of Occupy: those that others of that key and
// backend may join. Until Reset nobody leaves an address, so whatever kept one
// from it keeps the next who is like it, too, and need not be found out again:
// thousands may wait for a pool that is full.
type sharedList struct {
	addrs []netip.Addr

	// Which of addrs cannot be joined, by anybody, by whoever listens on a port,
	// or by whoever is of a realm and admits these others.
	closed  marks
	ports   map[Port]*marks
	strange map[[2]string]*marks
}

// sharedKey is what the addresses of one sharedList have in common.
type sharedKey struct {
	free         *freeList
	key, backend string
}

// marks is a set of indexes into sharedList.addrs.
type marks struct {
	words []uint64
	full  int // the words before this are
}

func (m *marks) add(i int) {
	for len(m.words) <= i/64 {
		m.words = append(m.words, 0)
	}
	m.words[i/64] |= 1 << (i % 64)
	for m.full < len(m.words) && m.words[m.full] == ^uint64(0) {
		m.full++
	}
}

// Join returns the first address of a pool and family, in the order of Occupy,
// that somebody shares with whom h, who holds none of them, may share.
// Those that are barred do not count, now nor later.
func (b *Allocations) Join(pool int, f Family, h *Holder, barred func(netip.Addr) bool) (netip.Addr, bool) {
	if h.Sharing == nil {
		return netip.Addr{}, false
	}
	c := b.shared[sharedKey{&b.free[2*pool+int(f)], h.Key, h.Backend}]
	if c == nil {
		return netip.Addr{}, false
	}
	b.against = c.against(b.against[:0], h)
	for i := c.next(b.against, 0); i < len(c.addrs); i = c.next(b.against, i+1) {
		a := c.addrs[i]
		if barred(a) {
			c.closed.add(i)
		} else if o, _ := b.Obstacle(a, h); o == nil {
			return a, true
		} else {
			c.refuse(i, h, o)
		}
	}
	return netip.Addr{}, false
}

// against appends the marks that count for h.
func (c *sharedList) against(list []*marks, h *Holder) []*marks {
	list = append(list, &c.closed)
	if m := c.strange[h.admission()]; m != nil {
		list = append(list, m)
	}
	if len(c.ports) > 0 {
		for _, p := range h.Ports {
			if m := c.ports[p]; m != nil {
				list = append(list, m)
			}
		}
	}
	return list
}

// admission is what decides to whom a holder is a stranger.
func (h *Holder) admission() [2]string { return [2]string{h.Realm, strings.Join(h.Admits, ",")} }

// next returns the first index from i on that nothing is against.
func (c *sharedList) next(against []*marks, i int) int {
	for _, m := range against {
		i = max(i, 64*m.full)
	}
	for ; i < len(c.addrs); i = (i/64 + 1) * 64 {
		word := uint64(1)<<(i%64) - 1
		for _, m := range against {
			if i/64 < len(m.words) {
				word |= m.words[i/64]
			}
		}
		if word != ^uint64(0) {
			return i/64*64 + bits.TrailingZeros64(^word)
		}
	}
	return i
}

// refuse enters that o keeps h from an address.
func (c *sharedList) refuse(i int, h, o *Holder) {
	if h.differs(o) { // and so from all who could come
		c.closed.add(i)
		return
	}
	if p, both := h.common(o); both {
		c.ports = mark(c.ports, p, i)
		return
	}
	c.strange = mark(c.strange, h.admission(), i)
}

func mark[K comparable](all map[K]*marks, key K, i int) map[K]*marks {
	if all == nil {
		all = map[K]*marks{}
	}
	if all[key] == nil {
		all[key] = &marks{}
	}
	all[key].add(i)
	return all
}

// note remembers that somebody like h holds an address, which is at s.
func (b *Allocations) note(s position, a netip.Addr, h *Holder) {
	if h.Sharing == nil || s.area == nil {
		return
	}
	at := sharedKey{s.free, h.Key, h.Backend}
	c := b.shared[at]
	if c == nil {
		c = &sharedList{}
		b.shared[at] = c
	}
	c.addrs = append(c.addrs, a)
	if key := (sharedKey{s.free, h.Key, ""}); !b.firstShared[key].IsValid() {
		b.firstShared[key] = a
	}
}

// FirstShared returns the first address of a pool and family that somebody
// shares under the key of h, whether or not h may join it.
func (b *Allocations) FirstShared(pool int, f Family, h *Holder) (netip.Addr, bool) {
	if h.Sharing == nil {
		return netip.Addr{}, false
	}
	a, ok := b.firstShared[sharedKey{&b.free[2*pool+int(f)], h.Key, ""}]
	return a, ok
}
