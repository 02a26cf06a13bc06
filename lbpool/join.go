package lbpool

import (
	"math/bits"
	"net/netip"
	"strings"
)

// A table is the addresses of one desk on which somebody shares under one key
// and backend, in the order of sitting: those that others of that key and
// backend may join. Until Reset nobody leaves an address, so whatever kept one
// from it keeps the next who is like it, too, and need not be found out again:
// thousands may wait for a pool that is full.
type table struct {
	addrs []netip.Addr

	// Which of addrs cannot be joined, by anybody, by whoever listens on a port,
	// or by whoever is of a realm and admits these others.
	closed  marks
	ports   map[Port]*marks
	strange map[[2]string]*marks
}

// under is what the addresses of one table have in common.
type under struct {
	desk         *desk
	key, backend string
}

// marks is a set of indexes into table.addrs.
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

// Join returns the first address of a pool and family, in the order of sitting,
// on which somebody shares with whom t, who sits on none of them, may share.
// Those that are barred do not count, now nor later.
func (b *Book) Join(pool int, f Family, t *Tenant, barred func(netip.Addr) bool) (netip.Addr, bool) {
	if t.Sharing == nil {
		return netip.Addr{}, false
	}
	c := b.tables[under{&b.desks[2*pool+int(f)], t.Key, t.Backend}]
	if c == nil {
		return netip.Addr{}, false
	}
	b.against = c.against(b.against[:0], t)
	for i := c.next(b.against, 0); i < len(c.addrs); i = c.next(b.against, i+1) {
		a := c.addrs[i]
		if barred(a) {
			c.closed.add(i)
		} else if o, _ := b.Obstacle(a, t); o == nil {
			return a, true
		} else {
			c.turnAway(i, t, o)
		}
	}
	return netip.Addr{}, false
}

// against appends the marks that count for t.
func (c *table) against(list []*marks, t *Tenant) []*marks {
	list = append(list, &c.closed)
	if m := c.strange[t.visa()]; m != nil {
		list = append(list, m)
	}
	if len(c.ports) > 0 {
		for _, p := range t.Ports {
			if m := c.ports[p]; m != nil {
				list = append(list, m)
			}
		}
	}
	return list
}

// visa is what decides to whom a tenant is a stranger.
func (t *Tenant) visa() [2]string { return [2]string{t.Realm, strings.Join(t.Admits, ",")} }

// next returns the first index from i on that nothing is against.
func (c *table) next(against []*marks, i int) int {
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

// turnAway enters that o keeps t from an address.
func (c *table) turnAway(i int, t, o *Tenant) {
	if t.differs(o) { // and so from all who could come
		c.closed.add(i)
		return
	}
	if p, both := t.common(o); both {
		c.ports = mark(c.ports, p, i)
		return
	}
	c.strange = mark(c.strange, t.visa(), i)
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

// note remembers that somebody like t sits on an address, which is at s.
func (b *Book) note(s spot, a netip.Addr, t *Tenant) {
	if t.Sharing == nil || s.area == nil {
		return
	}
	at := under{s.desk, t.Key, t.Backend}
	c := b.tables[at]
	if c == nil {
		c = &table{}
		b.tables[at] = c
	}
	c.addrs = append(c.addrs, a)
	if key := (under{s.desk, t.Key, ""}); !b.shared[key].IsValid() {
		b.shared[key] = a
	}
}

// FirstShared returns the first address of a pool and family on which somebody
// shares under the key of t, whether or not t may join it.
func (b *Book) FirstShared(pool int, f Family, t *Tenant) (netip.Addr, bool) {
	if t.Sharing == nil {
		return netip.Addr{}, false
	}
	a, ok := b.shared[under{&b.desks[2*pool+int(f)], t.Key, ""}]
	return a, ok
}
