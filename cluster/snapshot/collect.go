package snapshot

import "slices"

// Collect returns a Store of all of objects. It makes each branch once, where
// With would copy a path for every object.
func Collect[V any](objects map[Key]V) Store[V] {
	entries := make([]entry[V], 0, len(objects))
	leaves := make([]slot[V], 0, len(objects))
	for k, v := range objects {
		entries = append(entries, entry[V]{k, v})
		n := len(entries)
		leaves = append(leaves, slot[V]{hash: hashKey(k), entries: entries[n-1 : n : n]})
	}
	return Store[V]{collect(leaves, 0), len(objects)}
}

// collect returns the branch of leaves whose hashes agree below shift.
func collect[V any](leaves []slot[V], shift int) *branch[V] {
	if len(leaves) == 0 {
		return nil
	}
	var groups [1 << levelBits][]slot[V]
	for _, leaf := range leaves {
		g := &groups[leaf.hash>>shift&levelMask]
		*g = append(*g, leaf)
	}
	b := &branch[V]{}
	for i, g := range groups {
		if len(g) > 0 {
			b.used |= 1 << i
			b.slots = append(b.slots, gather(g, shift))
		}
	}
	b.slots = slices.Clip(b.slots)
	return b
}

// gather returns the slot of leaves that share one.
func gather[V any](leaves []slot[V], shift int) slot[V] {
	first := leaves[0]
	if slices.ContainsFunc(leaves, func(s slot[V]) bool { return s.hash != first.hash }) {
		return slot[V]{deeper: collect(leaves, shift+levelBits)}
	}
	for _, s := range leaves[1:] {
		first.entries = append(first.entries, s.entries...)
	}
	slices.SortFunc(first.entries, func(a, b entry[V]) int { return a.key.Compare(b.key) })
	return first
}
