package loadbalancer

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"quayside.io/api/v1alpha1"
	"quayside.io/lbpool"
)

// ByAge returns pools in the order in which overlaps are settled: an address
// belongs to the first that contains it, the oldest, so that a new pool takes
// nothing from those that are in use.
func ByAge(pools []*v1alpha1.IPAddressPool) []*v1alpha1.IPAddressPool {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b *v1alpha1.IPAddressPool) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pools
}

// Homes says which pool each address belongs to. The controller gives addresses
// by the same rule, over the same lookup.
type Homes struct {
	// Pools by age.
	Pools     []*v1alpha1.IPAddressPool
	ranges    [][]entry // by pool
	poolIndex *lbpool.PoolIndex
}

// entry is one of a pool's addresses that parses.
type entry struct {
	netipx.IPRange
	text string // as the operator wrote it
}

// HomesOf divides all addresses among pools. What does not parse is left out:
// the controller reports it.
func HomesOf(pools []*v1alpha1.IPAddressPool) Homes {
	h := Homes{Pools: ByAge(pools)}
	var raw []*lbpool.Pool
	for _, p := range h.Pools {
		var entries []entry
		own := &lbpool.Pool{Name: p.Name}
		for _, text := range p.Spec.Addresses {
			if r, err := lbpool.ParseRange(text); err == nil {
				entries = append(entries, entry{r, text})
				own.Ranges = append(own.Ranges, r)
			}
		}
		h.ranges = append(h.ranges, entries)
		raw = append(raw, own)
	}
	h.poolIndex = lbpool.Divide(raw)
	return h
}

// Of returns the index of the pool that a belongs to, or -1.
func (h *Homes) Of(a netip.Addr) int {
	if a.Zone() != "" {
		return -1 // it means nothing beyond one link
	}
	return h.poolIndex.PoolOf(a)
}

// Entry is what the operator of this pool wrote that contains a, or "".
func (h *Homes) Entry(pool int, a netip.Addr) string {
	for _, e := range h.ranges[pool] {
		if e.Contains(a) {
			return e.text
		}
	}
	return ""
}

// Covers reports whether all addresses of prefix belong to this pool.
func (h *Homes) Covers(pool int, prefix netip.Prefix) bool {
	r, of := h.poolIndex.RangeOf(prefix.Addr())
	return of == pool && r.Contains(netipx.PrefixLastIP(prefix))
}
