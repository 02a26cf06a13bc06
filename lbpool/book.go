package lbpool

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// Book records who sits on which address of an Estate, and which freed
// addresses rest. It is rewritten from what is known (Reset, then Sit and
// Rest), never edited from event to event, so it cannot drift from the truth.
type Book struct {
	estate *Estate
	areas  [2][]area // beside estate.spans
	desks  []desk    // two per pool, by family

	table   []seat
	pages   []page               // of all areas
	far     map[netip.Addr]int32 // index into table of addresses that are in no area
	tables  map[under]*table
	shared  map[under]netip.Addr // the first address of a key, whatever the backend
	against []*marks             // reused
}

// An area is a span of the estate, as far as offsets reach.
type area struct {
	desk  *desk
	from  netip.Addr
	size  uint64           // offsets are below it
	taken sparse           // offsets that Next must not propose; unused in what is reserved
	pages map[uint64]int32 // index into Book.pages, by offset/pageSize
}

// A page says who sits on the addresses of 64 offsets that follow each other,
// by index into Book.table plus one. Most addresses are given in their order,
// so this is smaller and quicker than an entry in a map for each.
type page [pageSize]int32

const pageSize = 64

// A desk hands out the addresses of one pool and family.
type desk struct {
	pool  int
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
	first   *Tenant
	company *company // nil: first is alone
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
		far:    map[netip.Addr]int32{},
		tables: map[under]*table{},
		shared: map[under]netip.Addr{},
	}
	for i := range b.desks {
		b.desks[i].pool = i / 2
	}
	for f := range e.spans {
		b.areas[f] = make([]area, len(e.spans[f]))
		for i, s := range e.spans[f] {
			n, d := uint64(size(s.IPRange)), &b.desks[2*s.pool+f]
			b.areas[f][i] = area{desk: d, from: s.From(), size: n, pages: map[uint64]int32{}}
			if s.open {
				b.areas[f][i].taken = newSparse(n)
				d.areas = append(d.areas, i)
			}
		}
	}
	return b
}

// Reset empties the book, keeps its memory, and makes room for n addresses
// that somebody sits on.
func (b *Book) Reset(n int) {
	for f := range b.areas {
		for i := range b.areas[f] {
			b.areas[f][i].taken.reset()
			clear(b.areas[f][i].pages)
		}
	}
	for i := range b.desks {
		d := &b.desks[i]
		d.at, d.freed, d.next, d.assigned, d.blocked = 0, d.freed[:0], 0, 0, 0
	}
	clear(b.table)
	b.table = slices.Grow(b.table[:0], n)
	b.pages = b.pages[:0]
	clear(b.far)
	clear(b.tables)
	clear(b.shared)
}

// A spot is where an address lies.
type spot struct {
	*area         // nil: outside the estate
	offset uint64 // in the area
	within bool   // the offset is one of the area's
}

func (b *Book) spot(a netip.Addr) spot {
	i := b.estate.find(a)
	if i < 0 {
		return spot{}
	}
	area := &b.areas[FamilyOf(a)][i]
	n, ok := offset(area.from, a)
	return spot{area, n, ok && n < area.size}
}

// seatAt returns the index into table of whoever sits at a, which is at s.
func (b *Book) seatAt(s spot, a netip.Addr) (int32, bool) {
	if !s.within {
		i, ok := b.far[a]
		return i, ok
	}
	if p, ok := s.pages[s.offset/pageSize]; ok {
		i := b.pages[p][s.offset%pageSize] - 1
		return i, i >= 0
	}
	return 0, false
}

// addSeat enters t as the first at a.
func (b *Book) addSeat(s spot, a netip.Addr, t *Tenant) {
	b.table = append(b.table, seat{first: t})
	if !s.within {
		b.far[a] = int32(len(b.table) - 1)
		return
	}
	p, ok := s.pages[s.offset/pageSize]
	if !ok {
		p = int32(len(b.pages))
		s.pages[s.offset/pageSize] = p
		b.pages = append(b.pages, page{})
	}
	b.pages[p][s.offset%pageSize] = int32(len(b.table))
}

// Sit puts t on an address, whoever else sits there: it records what is, and
// judges nothing. An address outside the estate is recorded too.
func (b *Book) Sit(a netip.Addr, t *Tenant) {
	at := b.spot(a)
	i, taken := b.seatAt(at, a)
	if !taken {
		b.addSeat(at, a, t)
		if b.block(at, a); at.area != nil {
			at.desk.assigned++
		}
		b.note(at, a, t)
		return
	}
	s := &b.table[i]
	if s.company == nil && s.first != t {
		s.company = &company{all: []*Tenant{s.first}}
	}
	if s.company == nil || s.company.holds(t) {
		return
	}
	if !s.company.knows(t) {
		b.note(at, a, t)
	}
	s.company.seat(t)
}

// Exclude keeps Next from an address without calling it assigned: a node's
// own, for example. Exclude before Rest: what is excluded never rests.
func (b *Book) Exclude(a netip.Addr) { b.block(b.spot(a), a) }

// block marks an address as not to be proposed, and reports whether Next might
// have proposed it before.
func (b *Book) block(at spot, a netip.Addr) bool {
	if !at.within || at.taken.levels == nil || b.estate.Avoids(at.desk.pool, a) || !at.taken.add(at.offset) {
		return false
	}
	at.desk.blocked++
	return true
}

// Rest says that an address was freed at a time. Call it in the order of
// time, for addresses on which nobody sits.
func (b *Book) Rest(a netip.Addr, at time.Time) {
	if s := b.spot(a); b.block(s, a) {
		s.desk.freed = append(s.desk.freed, rest{a, at})
	}
}

// Taken reports whether anybody sits on an address.
func (b *Book) Taken(a netip.Addr) bool {
	_, ok := b.seatAt(b.spot(a), a)
	return ok
}

// Tenants calls yield for everyone on an address, in the order of sitting.
func (b *Book) Tenants(a netip.Addr) func(yield func(*Tenant) bool) {
	return func(yield func(*Tenant) bool) {
		i, ok := b.seatAt(b.spot(a), a)
		switch {
		case !ok:
		case b.table[i].company == nil:
			yield(b.table[i].first)
		default:
			slices.Values(b.table[i].company.all)(yield)
		}
	}
}

// Obstacle returns the first tenant that t may not join on an address and why,
// or nil. Neither t nor any of but is an obstacle.
func (b *Book) Obstacle(a netip.Addr, t *Tenant, but ...*Tenant) (*Tenant, string) {
	o := b.first(a, t, but, (*Tenant).bars, true)
	if o == nil {
		return nil, ""
	}
	return o, t.Bar(o)
}

// Clash returns the first tenant on an address that t clashes with and why, or
// nil. Neither t nor any of but does.
func (b *Book) Clash(a netip.Addr, t *Tenant, but ...*Tenant) (*Tenant, string) {
	o := b.first(a, t, but, (*Tenant).differs, true)
	if o == nil {
		return nil, ""
	}
	return o, t.Clash(o)
}

// Stranger returns the first stranger to t on an address, or nil.
func (b *Book) Stranger(a netip.Addr, t *Tenant) *Tenant {
	return b.first(a, t, nil, (*Tenant).Stranger, false)
}

// first returns the first tenant on an address, other than t and but, that is
// odd in the eyes of t or, if ports count, listens where t does.
func (b *Book) first(a netip.Addr, t *Tenant, but []*Tenant, odd func(t, o *Tenant) bool, ports bool) *Tenant {
	i, ok := b.seatAt(b.spot(a), a)
	if !ok {
		return nil
	}
	s := &b.table[i]
	if s.company != nil {
		return s.company.first(t, but, odd, ports)
	}
	if o := s.first; o != t && !slices.Contains(but, o) && (odd(t, o) || ports && t.meets(o)) {
		return o
	}
	return nil
}

// Next proposes a free address of a pool, or false. The lowest address that
// was never used comes first, then the one freed longest ago, if it has rested
// long enough. It goes on proposing the same one until somebody sits there.
func (b *Book) Next(pool int, f Family, now time.Time) (netip.Addr, bool) {
	d := &b.desks[2*pool+int(f)]
	for ; d.at < len(d.areas); d.at++ {
		area := &b.areas[f][d.areas[d.at]]
		for {
			n := area.taken.lowestMissing()
			if n >= area.size {
				break
			}
			if a := plus(area.from, n); !b.estate.Avoids(pool, a) {
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
	for _, r := range d.freed[d.next:] { // somebody sits on those before
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
