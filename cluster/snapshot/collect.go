package snapshot

import (
	"iter"
	"slices"
)

// Collect returns a Store of all objects, n or fewer, whose keys all differ. It
// makes each branch once, where With would copy a path for every object.
func Collect[V any](n int, objects iter.Seq2[Key, V]) Store[V] {
	entries := make([]entry[V], 0, n)
	for k, v := range objects {
		entries = append(entries, entry[V]{k, v})
	}
	leaves := make([]slot[V], len(entries))
	for i := range entries {
		leaves[i] = slot[V]{hash: hashKey(entries[i].key), entries: entries[i : i+1 : i+1]}
	}
	return Store[V]{collect(leaves, make([]slot[V], len(leaves)), 0), len(entries)}
}

// collect returns the branch of leaves whose hashes agree below shift. It uses up
// leaves and scratch, which is as long.
func collect[V any](leaves, scratch []slot[V], shift int) *branch[V] {
	if len(leaves) == 0 {
		return nil
	}
	var ends [1 << levelBits]int // of each child's leaves in scratch
	for i := range leaves {
		ends[leaves[i].hash>>shift&levelMask]++
	}
	at, children := 0, 0
	for child, n := range ends {
		ends[child] = at
		if at += n; n > 0 {
			children++
		}
	}
	for _, leaf := range leaves {
		child := leaf.hash >> shift & levelMask
		scratch[ends[child]] = leaf
		ends[child]++
	}
	b := &branch[V]{slots: make([]slot[V], 0, children)}
	start := 0
	for child, end := range ends {
		if end > start {
			b.used |= 1 << child
			b.slots = append(b.slots, gather(scratch[start:end], leaves[start:end], shift))
		}
		start = end
	}
	return b
}

// gather returns the slot of leaves that share one.
func gather[V any](leaves, scratch []slot[V], shift int) slot[V] {
	first := leaves[0]
	if slices.ContainsFunc(leaves, func(s slot[V]) bool { return s.hash != first.hash }) {
		return slot[V]{deeper: collect(leaves, scratch, shift+levelBits)}
	}
	for _, s := range leaves[1:] {
		first.entries = append(first.entries, s.entries...)
	}
	slices.SortFunc(first.entries, func(a, b entry[V]) int { return a.key.Compare(b.key) })
	return first
}
