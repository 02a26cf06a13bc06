package snapshot

import "iter"

// Diff yields the keys whose values differ between old and new: added, removed
// or replaced, in no particular order. It does not look into what the two share,
// so that two neighbours in one history cost what changed between them, not what
// they hold.
func Diff[V comparable](old, new Store[V]) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		diffBranch(old.root, new.root, yield)
	}
}

func diffBranch[V comparable](a, b *branch[V], yield func(Key) bool) bool {
	if a == b {
		return true
	}
	for i := range uint64(1 << levelBits) {
		sa, sb := a.at(i), b.at(i)
		switch {
		case sa == nil && sb == nil:
			continue
		case sa != nil && sb != nil && sa.deeper != nil && sb.deeper != nil:
			if !diffBranch(sa.deeper, sb.deeper, yield) {
				return false
			}
		default: // a leaf on at least one side: whatever is below is short
			if !diffSlot(sa, sb, yield) {
				return false
			}
		}
	}
	return true
}

// diffSlot compares two slots of which at least one is a leaf or missing.
func diffSlot[V comparable](a, b *slot[V], yield func(Key) bool) bool {
	before, after := map[Key]V{}, map[Key]V{}
	a.collect(before)
	b.collect(after)
	for k, v := range after {
		old, ok := before[k]
		delete(before, k)
		if ok && old == v {
			continue
		}
		if !yield(k) {
			return false
		}
	}
	for k := range before {
		if !yield(k) {
			return false
		}
	}
	return true
}

// at returns the slot of bit i, or nil.
func (b *branch[V]) at(i uint64) *slot[V] {
	if b == nil {
		return nil
	}
	if j, ok := b.find(i, 0); ok {
		return &b.slots[j]
	}
	return nil
}

func (s *slot[V]) collect(into map[Key]V) {
	if s == nil {
		return
	}
	s.deeper.each(func(k Key, v V) bool { into[k] = v; return true })
	for _, e := range s.entries {
		into[e.key] = e.value
	}
}
