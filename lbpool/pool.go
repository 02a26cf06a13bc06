package lbpool

import (
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"
)

// Pool is a set of addresses to allocate from, as an operator writes it.
type Pool struct {
	// Name of the pool.
	Name string
	// Ranges that belong to the pool.
	Ranges []netipx.IPRange
	// Reserved ranges are allocated only to a holder that requests the address.
	Reserved []netipx.IPRange
	// AvoidBuggy leaves out IPv4 addresses that end in .0 and .255.
	AvoidBuggy bool
	// ReuseAfter is how long a freed address is not allocated again; see Rest.
	ReuseAfter time.Duration
}

// PoolIndex finds the pool of an address. Every address belongs to at most one pool.
type PoolIndex struct {
	// Pools in their order.
	Pools []*Pool
	// Overlaps are the ranges that pools lost to earlier ones.
	Overlaps []Overlap

	spans [2][]span  // per family, sorted, disjoint
	open  [][2]int64 // per pool and family: the number of addresses that Next may propose
	has   [][2]bool  // per pool and family: whether it has any address
}

// Overlap is ranges of Pool that belong to First, an earlier pool.
type Overlap struct {
	Pool, First *Pool
	Ranges      []netipx.IPRange
}

// span is one range of one pool, either open or reserved.
type span struct {
	netipx.IPRange
	pool int
	open bool
}

// Divide gives every address to the first of pools that contains it.
func Divide(pools []*Pool) *PoolIndex {
	e := &PoolIndex{Pools: pools, open: make([][2]int64, len(pools)), has: make([][2]bool, len(pools))}
	for i, p := range pools {
		e.settle(i, p)
	}
	return e
}

// settle gives pool i the part of its ranges that no earlier pool has.
func (e *PoolIndex) settle(i int, p *Pool) {
	var own netipx.IPSetBuilder
	for _, r := range p.Ranges {
		own.AddRange(r)
	}
	lost := map[int][]netipx.IPRange{}
	for _, r := range rangesOf(&own) {
		for _, s := range e.overlapping(r) {
			common := netipx.IPRangeFrom(later(r.From(), s.From()), earlier(r.To(), s.To()))
			own.RemoveRange(common)
			lost[s.pool] = append(lost[s.pool], common)
		}
	}
	for first := range i {
		if ranges := lost[first]; ranges != nil {
			e.Overlaps = append(e.Overlaps, Overlap{p, e.Pools[first], ranges})
		}
	}
	all, _ := own.IPSet()
	var open, reserved netipx.IPSetBuilder
	open.AddSet(all)
	for _, r := range p.Reserved {
		open.RemoveRange(r)
	}
	proposed, _ := open.IPSet()
	reserved.AddSet(all)
	reserved.RemoveSet(proposed)
	var fresh [2][]span
	for _, r := range proposed.Ranges() {
		n := size(r)
		if p.AvoidBuggy {
			n -= countBuggy(r)
		}
		f := FamilyOf(r.From())
		e.open[i][f] = addSaturating(e.open[i][f], n)
		fresh[f] = append(fresh[f], span{r, i, true})
	}
	for _, r := range rangesOf(&reserved) {
		f := FamilyOf(r.From())
		fresh[f] = append(fresh[f], span{r, i, false})
	}
	for f := range fresh {
		e.has[i][f] = len(fresh[f]) > 0
		e.spans[f] = merge(e.spans[f], fresh[f])
	}
}

// rangesOf returns the merged ranges of b. Only ranges that were valid were
// added, and nothing else makes IPSet fail.
func rangesOf(b *netipx.IPSetBuilder) []netipx.IPRange {
	set, _ := b.IPSet()
	return set.Ranges()
}

// merge adds spans that overlap none to a sorted list: all those of a pool at once, since
// inserting them one by one would take quadratic time.
func merge(list, fresh []span) []span {
	slices.SortFunc(fresh, func(a, b span) int { return a.From().Compare(b.From()) })
	i, j := len(list)-1, len(fresh)-1
	list = append(list, fresh...)
	for k := len(list) - 1; j >= 0; k-- {
		if i >= 0 && fresh[j].From().Less(list[i].From()) {
			list[k] = list[i]
			i--
		} else {
			list[k] = fresh[j]
			j--
		}
	}
	return list
}

// search returns the index of the first span that ends at a or behind it.
func (e *PoolIndex) search(a netip.Addr) int {
	list := e.spans[FamilyOf(a)]
	low, high := 0, len(list)
	for low < high { // not slices.BinarySearchFunc: this runs several times for every address of a plan
		if middle := (low + high) / 2; list[middle].To().Less(a) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (e *PoolIndex) overlapping(r netipx.IPRange) []span {
	list := e.spans[FamilyOf(r.From())]
	from := e.search(r.From())
	to := from
	for to < len(list) && !r.To().Less(list[to].From()) {
		to++
	}
	return list[from:to]
}

// find returns the index of the span that holds a, or -1.
func (e *PoolIndex) find(a netip.Addr) int {
	list := e.spans[FamilyOf(a)]
	if i := e.search(a); i < len(list) && !a.Less(list[i].From()) {
		return i
	}
	return -1
}

// PoolOf returns the index of the pool that a belongs to, or -1.
func (e *PoolIndex) PoolOf(a netip.Addr) int {
	if i := e.find(a); i >= 0 {
		return e.spans[FamilyOf(a)][i].pool
	}
	return -1
}

// IsReserved reports whether a belongs to a pool that allocates it only to a holder that
// requests it.
func (e *PoolIndex) IsReserved(a netip.Addr) bool {
	i := e.find(a)
	return i >= 0 && !e.spans[FamilyOf(a)][i].open
}

// RangeOf returns the contiguous range of one pool that contains a, and the index of that
// pool, or -1. Reserved addresses are in ranges of their own.
func (e *PoolIndex) RangeOf(a netip.Addr) (netipx.IPRange, int) {
	i := e.find(a)
	if i < 0 {
		return netipx.IPRange{}, -1
	}
	s := e.spans[FamilyOf(a)][i]
	return s.IPRange, s.pool
}

// Has reports whether the pool at this index has any address of a family that no earlier
// pool has.
func (e *PoolIndex) Has(pool int, f Family) bool {
	return e.has[pool][f]
}

func later(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return b
	}
	return a
}

func earlier(a, b netip.Addr) netip.Addr {
	if b.Less(a) {
		return b
	}
	return a
}

// Avoids reports whether a pool leaves out an address of its ranges because it ends in .0
// or .255, which some old equipment drops.
func (e *PoolIndex) Avoids(pool int, a netip.Addr) bool {
	return e.Pools[pool].AvoidBuggy && isBuggy(a)
}
