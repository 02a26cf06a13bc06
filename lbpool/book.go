package lbpool

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// Book records who sits on which address of an Estate, and which freed
// addresses rest. It is written anew from what is known (Reset, then Sit and
// Rest), never edited from event to event, so it cannot drift from the truth.
type Book struct {
	estate *Estate
	areas  [2][]area // beside estate.spans
	desks  []desk    // two per pool, by family

	seats map[netip.Addr]int32 // index into table
	table []seat
	keys  map[string][]netip.Addr // sharing key -> addresses, in the order of sitting
}

// An area is the part of an open span from which Next proposes.
type area struct {
	size  uint64
	taken sparse // offsets that Next must not propose
}

// A desk hands out the addresses of one pool and family.
type desk struct {
	areas []int // open spans, in order of address
	at    int   // no area before this one has anything fresh
	freed []rest
	next  int // no freed address before this one is of use

	assigned int64 // addresses somebody sits on
	blocked  int64 // open ones among those, and those excluded or freed
}

type rest struct {
	addr netip.Addr
	at   time.Time
}

type seat struct {
	first *Tenant
	more  []*Tenant
}

// Usage counts the addresses of one pool and family, saturating at MaxInt64.
type Usage struct {
	Assigned  int64 // somebody sits on it
	Available int64 // Next would propose it now, or after others
}

// NewBook returns an empty book for an estate.
func NewBook(e *Estate) *Book {
	b := &Book{
		estate: e,
		desks:  make([]desk, 2*len(e.Pools)),
		seats:  map[netip.Addr]int32{},
		keys:   map[string][]netip.Addr{},
	}
	for f := range e.spans {
		b.areas[f] = make([]area, len(e.spans[f]))
		for i, s := range e.spans[f] {
			if s.open {
				n := uint64(size(s.IPRange))
				b.areas[f][i] = area{n, newSparse(n)}
				d := &b.desks[2*s.pool+f]
				d.areas = append(d.areas, i)
			}
		}
	}
	return b
}

// Reset empties the book and keeps its memory.
func (b *Book) Reset() {
	for f := range b.areas {
		for i := range b.areas[f] {
			b.areas[f][i].taken.reset()
		}
	}
	for i := range b.desks {
		d := &b.desks[i]
		d.at, d.freed, d.next, d.assigned, d.blocked = 0, d.freed[:0], 0, 0, 0
	}
	clear(b.seats)
	clear(b.table)
	b.table = b.table[:0]
	clear(b.keys)
}

// Sit puts t on an address, whoever else sits there: it records what is, and
// judges nothing. An address outside the estate is recorded too.
func (b *Book) Sit(a netip.Addr, t *Tenant) {
	i, taken := b.seats[a]
	if !taken {
		b.seats[a] = int32(len(b.table))
		b.table = append(b.table, seat{first: t})
		if desk, _ := b.block(a); desk != nil {
			desk.assigned++
		}
		b.note(a, t)
		return
	}
	if s := &b.table[i]; s.first != t && !slices.Contains(s.more, t) {
		if s.first.Key != t.Key && !slices.ContainsFunc(s.more, func(o *Tenant) bool { return o.Key == t.Key }) {
			b.note(a, t)
		}
		s.more = append(s.more, t)
	}
}

// note remembers that somebody with the key of t sits on an address.
func (b *Book) note(a netip.Addr, t *Tenant) {
	if t.Key != "" {
		b.keys[t.Key] = append(b.keys[t.Key], a)
	}
}

// Exclude keeps Next from an address without calling it assigned: a node's
// own, for example. Exclude before Rest: what is excluded never rests.
func (b *Book) Exclude(a netip.Addr) { b.block(a) }

// block marks an address as not to be proposed. It returns its desk, nil
// outside the estate, and whether Next might have proposed it before.
func (b *Book) block(a netip.Addr) (*desk, bool) {
	i := b.estate.find(a)
	if i < 0 {
		return nil, false
	}
	f := FamilyOf(a)
	s := &b.estate.spans[f][i]
	d := &b.desks[2*s.pool+int(f)]
	if !s.open || b.estate.Avoids(s.pool, a) {
		return d, false
	}
	n, ok := offset(s.From(), a)
	fresh := ok && n < b.areas[f][i].size && b.areas[f][i].taken.add(n)
	if fresh {
		d.blocked++
	}
	return d, fresh
}

// Rest says that an address was freed at a time. Call it in the order of
// time, for addresses on which nobody sits.
func (b *Book) Rest(a netip.Addr, at time.Time) {
	if d, fresh := b.block(a); fresh {
		d.freed = append(d.freed, rest{a, at})
	}
}

// Taken reports whether anybody sits on an address.
func (b *Book) Taken(a netip.Addr) bool {
	_, ok := b.seats[a]
	return ok
}

// Tenants calls yield for everyone on an address, in the order of sitting.
func (b *Book) Tenants(a netip.Addr) func(yield func(*Tenant) bool) {
	return func(yield func(*Tenant) bool) {
		i, ok := b.seats[a]
		if !ok || !yield(b.table[i].first) {
			return
		}
		for _, t := range b.table[i].more {
			if !yield(t) {
				return
			}
		}
	}
}

// Obstacle returns the first tenant that t may not join on an address and why,
// or nil. A tenant is no obstacle to itself.
func (b *Book) Obstacle(a netip.Addr, t *Tenant) (*Tenant, string) {
	for o := range b.Tenants(a) {
		if o != t {
			if why := t.Bar(o); why != "" {
				return o, why
			}
		}
	}
	return nil, ""
}

// Shared returns the addresses on which a tenant with this key sits. Nobody
// shares under the empty key.
func (b *Book) Shared(key string) []netip.Addr { return b.keys[key] }

// Next proposes a free address of a pool, or false. The lowest address that
// was never used comes first, then the one freed longest ago, if it has rested
// long enough. It goes on proposing the same one until somebody sits there.
func (b *Book) Next(pool int, f Family, now time.Time) (netip.Addr, bool) {
	d := &b.desks[2*pool+int(f)]
	for ; d.at < len(d.areas); d.at++ {
		i := d.areas[d.at]
		area, from := &b.areas[f][i], b.estate.spans[f][i].From()
		for {
			n := area.taken.lowestMissing()
			if n >= area.size {
				break
			}
			if a := plus(from, n); !b.estate.Avoids(pool, a) {
				return a, true
			}
			area.taken.add(n)
		}
	}
	for ; d.next < len(d.freed); d.next++ {
		if r := d.freed[d.next]; !b.Taken(r.addr) {
			return r.addr, !now.Before(r.at.Add(b.estate.Pools[pool].ReuseAfter))
		}
	}
	return netip.Addr{}, false
}

// Wake returns when the first resting address of a pool can be used, or zero.
func (b *Book) Wake(pool int, f Family, now time.Time) time.Time {
	d := &b.desks[2*pool+int(f)]
	for _, r := range d.freed {
		until := r.at.Add(b.estate.Pools[pool].ReuseAfter)
		if until.After(now) && !b.Taken(r.addr) {
			return until
		}
	}
	return time.Time{}
}

// Usage counts the addresses of a pool and family.
func (b *Book) Usage(pool int, f Family, now time.Time) Usage {
	d := &b.desks[2*pool+int(f)]
	free := b.estate.open[pool][f]
	if free < math.MaxInt64 {
		free -= d.blocked
		for _, r := range d.freed {
			if !b.Taken(r.addr) && !now.Before(r.at.Add(b.estate.Pools[pool].ReuseAfter)) {
				free++
			}
		}
	}
	return Usage{d.assigned, free}
}
