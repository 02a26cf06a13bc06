package lbpool

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// Allocations records the holders of the addresses of a PoolIndex, and which freed
// addresses rest. It is rebuilt from the current state (Reset, then Occupy and Rest), never
// updated event by event, so it cannot diverge from it.
type Allocations struct {
	pools *PoolIndex
	areas [2][]area  // by the index of pools.spans
	free  []freeList // two per pool, by family

	held        []occupancy
	pages       []page               // of all areas
	far         map[netip.Addr]int32 // index into held of addresses that are in no area
	shared      map[sharedKey]*sharedList
	firstShared map[sharedKey]netip.Addr // the first address of a key, whatever the backend
	against     []*marks                 // reused
}

// area is a span of the PoolIndex, up to the largest offset.
type area struct {
	free  *freeList
	from  netip.Addr
	size  uint64           // offsets are below it
	taken sparse           // offsets that Next must not propose; unused in what is reserved
	pages map[uint64]int32 // index into Allocations.pages, by offset/pageSize
}

// page is the holders of the addresses at 64 consecutive offsets, by index into
// Allocations.held plus one. Most addresses are allocated in order, so this is smaller and
// faster than a map entry for each.
type page [pageSize]int32

const pageSize = 64

// freeList finds free addresses of one pool and family.
type freeList struct {
	pool  int
	areas []int // open spans, in order of address
	at    int   // no area before this one has a free address
	freed []rest
	next  int // no freed address before this one can be used

	deferred []netip.Addr
	last     int // no deferred address before this one can be used

	assigned int64 // addresses with a holder
	blocked  int64 // open ones among those, and those excluded or freed
}

type rest struct {
	addr netip.Addr
	at   time.Time
}

// occupancy is the holders of one address.
type occupancy struct {
	first    *Holder
	together *holders // nil: first is alone
}

// Usage counts the addresses of one pool and family, saturating at MaxInt64.
type Usage struct {
	Assigned  int64 // with a holder
	Available int64 // that Next would propose now, or after others
}

// NewAllocations returns Allocations of pools without holders.
func NewAllocations(e *PoolIndex) *Allocations {
	b := &Allocations{
		pools:       e,
		free:        make([]freeList, 2*len(e.Pools)),
		far:         map[netip.Addr]int32{},
		shared:      map[sharedKey]*sharedList{},
		firstShared: map[sharedKey]netip.Addr{},
	}
	for i := range b.free {
		b.free[i].pool = i / 2
	}
	for f := range e.spans {
		b.areas[f] = make([]area, len(e.spans[f]))
		for i, s := range e.spans[f] {
			n, d := uint64(size(s.IPRange)), &b.free[2*s.pool+f]
			b.areas[f][i] = area{free: d, from: s.From(), size: n, pages: map[uint64]int32{}}
			if s.open {
				b.areas[f][i].taken = newSparse(n)
				d.areas = append(d.areas, i)
			}
		}
	}
	return b
}

// Reset removes every holder, keeps the memory, and makes room for n addresses with a
// holder.
func (b *Allocations) Reset(n int) {
	for f := range b.areas {
		for i := range b.areas[f] {
			b.areas[f][i].taken.reset()
			clear(b.areas[f][i].pages)
		}
	}
	for i := range b.free {
		d := &b.free[i]
		d.at, d.freed, d.next, d.assigned, d.blocked = 0, d.freed[:0], 0, 0, 0
		d.deferred, d.last = d.deferred[:0], 0
	}
	clear(b.held)
	b.held = slices.Grow(b.held[:0], n)
	b.pages = b.pages[:0]
	clear(b.far)
	clear(b.shared)
	clear(b.firstShared)
}

// position is where an address lies.
type position struct {
	*area         // nil: outside every pool
	offset uint64 // in the area
	within bool   // the offset is one of the area's
}

func (b *Allocations) position(a netip.Addr) position {
	i := b.pools.find(a)
	if i < 0 {
		return position{}
	}
	area := &b.areas[FamilyOf(a)][i]
	n, ok := offset(area.from, a)
	return position{area, n, ok && n < area.size}
}

// indexAt returns the index into held of the holders of a, which is at s.
func (b *Allocations) indexAt(s position, a netip.Addr) (int32, bool) {
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

// add records h as the first holder of a.
func (b *Allocations) add(s position, a netip.Addr, h *Holder) {
	b.held = append(b.held, occupancy{first: h})
	if !s.within {
		b.far[a] = int32(len(b.held) - 1)
		return
	}
	p, ok := s.pages[s.offset/pageSize]
	if !ok {
		p = int32(len(b.pages))
		s.pages[s.offset/pageSize] = p
		b.pages = append(b.pages, page{})
	}
	b.pages[p][s.offset%pageSize] = int32(len(b.held))
}

// Occupy makes h a holder of an address. It checks nothing: the address may have other
// holders, or be outside every pool.
func (b *Allocations) Occupy(a netip.Addr, h *Holder) {
	at := b.position(a)
	i, taken := b.indexAt(at, a)
	if !taken {
		b.add(at, a, h)
		if b.block(at, a); at.area != nil {
			at.free.assigned++
		}
		b.note(at, a, h)
		return
	}
	s := &b.held[i]
	if s.together == nil && s.first != h {
		s.together = &holders{all: []*Holder{s.first}}
	}
	if s.together == nil || s.together.has(h) {
		return
	}
	if !s.together.knows(h) {
		b.note(at, a, h)
	}
	s.together.add(h)
}

// Exclude keeps Next from proposing an address, such as a node's own, without counting it
// as assigned. Call Exclude before Rest: an excluded address never rests.
func (b *Allocations) Exclude(a netip.Addr) { b.block(b.position(a), a) }

// block marks an address as not to be proposed, and reports whether Next could have proposed
// it before.
func (b *Allocations) block(at position, a netip.Addr) bool {
	if !at.within || at.taken.levels == nil || b.pools.Avoids(at.free.pool, a) || !at.taken.add(at.offset) {
		return false
	}
	at.free.blocked++
	return true
}

// Rest records when an address was freed; see Pool.ReuseAfter. Call it in order of time, for
// addresses without a holder.
func (b *Allocations) Rest(a netip.Addr, at time.Time) {
	if s := b.position(a); b.block(s, a) {
		s.free.freed = append(s.free.freed, rest{a, at})
	}
}

// Defer has Next propose an address when there is no other that it may. Call it after
// Exclude and Rest, whose addresses it leaves as they are.
func (b *Allocations) Defer(a netip.Addr) {
	if s := b.position(a); b.block(s, a) {
		s.free.deferred = append(s.free.deferred, a)
	}
}

// Taken reports whether an address has a holder.
func (b *Allocations) Taken(a netip.Addr) bool {
	_, ok := b.indexAt(b.position(a), a)
	return ok
}

// Holders calls yield for every holder of an address, in the order of Occupy.
func (b *Allocations) Holders(a netip.Addr) func(yield func(*Holder) bool) {
	return func(yield func(*Holder) bool) {
		i, ok := b.indexAt(b.position(a), a)
		switch {
		case !ok:
		case b.held[i].together == nil:
			yield(b.held[i].first)
		default:
			slices.Values(b.held[i].together.all)(yield)
		}
	}
}

// Obstacle returns the first holder of an address that h may not join, and why, or nil. It
// skips h and those in but.
func (b *Allocations) Obstacle(a netip.Addr, h *Holder, but ...*Holder) (*Holder, string) {
	o := b.first(a, h, but, (*Holder).bars, true)
	if o == nil {
		return nil, ""
	}
	return o, h.Bar(o)
}

// Clash returns the first holder of an address with which h clashes, and why, or nil. It
// skips h and those in but.
func (b *Allocations) Clash(a netip.Addr, h *Holder, but ...*Holder) (*Holder, string) {
	o := b.first(a, h, but, (*Holder).differs, true)
	if o == nil {
		return nil, ""
	}
	return o, h.Clash(o)
}

// Unadmitted returns the first holder of an address that is Unadmitted by h, or nil.
func (b *Allocations) Unadmitted(a netip.Addr, h *Holder) *Holder {
	return b.first(a, h, nil, (*Holder).Unadmitted, false)
}

// first returns the first holder of an address, other than h and those in but, for which
// odd holds or, if ports is set, that has a port in common with h.
func (b *Allocations) first(a netip.Addr, h *Holder, but []*Holder, odd func(h, o *Holder) bool, ports bool) *Holder {
	i, ok := b.indexAt(b.position(a), a)
	if !ok {
		return nil
	}
	s := &b.held[i]
	if s.together != nil {
		return s.together.first(h, but, odd, ports)
	}
	if o := s.first; o != h && !slices.Contains(but, o) && (odd(h, o) || ports && h.meets(o)) {
		return o
	}
	return nil
}

// Next proposes a free address of a pool, or false. The lowest address that
// was never used comes first, then the one freed longest ago, if it has rested
// long enough, then what was deferred, and at last anycast addresses of routers (see
// isAnycast). It goes on proposing the same one until somebody holds it.
func (b *Allocations) Next(pool int, f Family, now time.Time) (netip.Addr, bool) {
	d := &b.free[2*pool+int(f)]
	for ; d.at < len(d.areas); d.at++ {
		area := &b.areas[f][d.areas[d.at]]
		for {
			n := area.taken.lowestMissing()
			if n >= area.size {
				break
			}
			switch a := plus(area.from, n); {
			case b.pools.Avoids(pool, a):
				area.taken.add(n)
			case isAnycast(a):
				b.Defer(a)
			default:
				return a, true
			}
		}
	}
	for ; d.next < len(d.freed); d.next++ {
		if r := d.freed[d.next]; b.Taken(r.addr) {
			continue
		} else if !now.Before(r.at.Add(b.pools.Pools[pool].ReuseAfter)) {
			return r.addr, true
		}
		break // those behind it were freed later
	}
	for ; d.last < len(d.deferred); d.last++ {
		if a := d.deferred[d.last]; !b.Taken(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Wake returns when the first resting address of a pool can be used, or zero.
func (b *Allocations) Wake(pool int, f Family, now time.Time) time.Time {
	d := &b.free[2*pool+int(f)]
	for _, r := range d.freed[d.next:] { // somebody holds those before
		until := r.at.Add(b.pools.Pools[pool].ReuseAfter)
		if until.After(now) && !b.Taken(r.addr) {
			return until
		}
	}
	return time.Time{}
}

// Usage counts the addresses of a pool and family.
func (b *Allocations) Usage(pool int, f Family, now time.Time) Usage {
	d := &b.free[2*pool+int(f)]
	free := b.pools.open[pool][f]
	if free < math.MaxInt64 {
		free -= d.blocked
		for _, r := range d.freed {
			if !b.Taken(r.addr) && !now.Before(r.at.Add(b.pools.Pools[pool].ReuseAfter)) {
				free++
			}
		}
		for _, a := range d.deferred {
			if !b.Taken(a) {
				free++
			}
		}
	}
	return Usage{d.assigned, free}
}
