package snapshot

import (
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// Key names an object within its kind. Cluster-scoped objects have no Namespace.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or the name alone of a cluster-scoped object.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders keys by namespace, then name.
func (k Key) Compare(o Key) int {
	if order := strings.Compare(k.Namespace, o.Namespace); order != 0 {
		return order
	}
	return strings.Compare(k.Name, o.Name)
}

// Store is a persistent map from Key to V: With and Without return a new Store
// that shares all but one path with the old one. The zero value is empty.
type Store[V any] struct {
	root *branch[V]
	n    int
}

// A branch is one level of a hash trie, 32 ways wide. Its slots are packed:
// bit i of used says that child i exists. A slot holds either a deeper branch
// or the entries of one hash (several only when two keys collide).
type branch[V any] struct {
	used  uint32
	slots []slot[V]
}

type slot[V any] struct {
	deeper  *branch[V]
	hash    uint64
	entries []entry[V]
}

type entry[V any] struct {
	key   Key
	value V
}

const (
	levelBits = 5
	levelMask = 1<<levelBits - 1
)

// Len is the number of objects.
func (s Store[V]) Len() int { return s.n }

// Get returns the value of k, or the zero value and false.
func (s Store[V]) Get(k Key) (V, bool) {
	hash := hashKey(k)
	b := s.root
	for shift := 0; b != nil; shift += levelBits {
		i, ok := b.find(hash, shift)
		if !ok {
			break
		}
		if at := &b.slots[i]; at.deeper != nil {
			b = at.deeper
			continue
		} else if at.hash == hash {
			for j := range at.entries {
				if at.entries[j].key == k {
					return at.entries[j].value, true
				}
			}
		}
		break
	}
	var none V
	return none, false
}

// With returns a Store in which k has value v.
func (s Store[V]) With(k Key, v V) Store[V] {
	added := true
	root := s.root.with(slot[V]{hash: hashKey(k), entries: []entry[V]{{k, v}}}, 0, &added)
	if added {
		s.n++
	}
	return Store[V]{root, s.n}
}

// Without returns a Store that lacks k.
func (s Store[V]) Without(k Key) Store[V] {
	if _, ok := s.Get(k); !ok {
		return s
	}
	return Store[V]{s.root.without(k, hashKey(k), 0), s.n - 1}
}

// All yields every object in an unspecified but repeatable order: what two Stores
// both hold, they yield in the same (unless the hashes of two keys are one).
func (s Store[V]) All() iter.Seq2[Key, V] {
	return func(yield func(Key, V) bool) { s.root.each(yield) }
}

// Sorted returns every value in the order of its key. Compilers that need a
// deterministic answer start here.
func (s Store[V]) Sorted() []V {
	entries := make([]entry[V], 0, s.n)
	for k, v := range s.All() {
		entries = append(entries, entry[V]{k, v})
	}
	slices.SortFunc(entries, func(a, b entry[V]) int { return a.key.Compare(b.key) })
	values := make([]V, len(entries))
	for i, e := range entries {
		values[i] = e.value
	}
	return values
}

// First returns the first n values that are wanted, in the order of their keys, and how
// many are wanted in all; n is 1 or more. It puts few of the others in order.
func (s Store[V]) First(n int, wanted func(V) bool) (values []V, all int) {
	var first []entry[V]
	full := false // the first n were put in order once, so nothing is needed from behind them
	cut := func() {
		slices.SortFunc(first, func(a, b entry[V]) int { return a.key.Compare(b.key) })
		first = first[:min(n, len(first))]
	}
	for k, v := range s.All() {
		if !wanted(v) {
			continue
		}
		if all++; full && first[n-1].key.Compare(k) < 0 {
			continue
		}
		if first = append(first, entry[V]{k, v}); len(first)-n >= n {
			cut()
			full = true
		}
	}
	cut()
	values = make([]V, len(first))
	for i, e := range first {
		values[i] = e.value
	}
	return values, all
}

// find returns the slot index of hash at this level, and whether it is used.
func (b *branch[V]) find(hash uint64, shift int) (int, bool) {
	bit := uint32(1) << (hash >> shift & levelMask)
	return bits.OnesCount32(b.used & (bit - 1)), b.used&bit != 0
}

func (b *branch[V]) with(leaf slot[V], shift int, added *bool) *branch[V] {
	if b == nil {
		b = &branch[V]{}
	}
	i, taken := b.find(leaf.hash, shift)
	if !taken {
		bit := uint32(1) << (leaf.hash >> shift & levelMask)
		return &branch[V]{b.used | bit, slices.Insert(slices.Clone(b.slots), i, leaf)}
	}
	n := &branch[V]{b.used, slices.Clone(b.slots)}
	switch at := &n.slots[i]; {
	case at.deeper != nil:
		at.deeper = at.deeper.with(leaf, shift+levelBits, added)
	case at.hash == leaf.hash:
		at.entries = mergeEntry(at.entries, leaf.entries[0], added)
	default: // two hashes share this slot: push the old one a level down
		var ignored bool
		down := (*branch[V])(nil).with(*at, shift+levelBits, &ignored)
		*at = slot[V]{deeper: down.with(leaf, shift+levelBits, added)}
	}
	return n
}

func mergeEntry[V any](old []entry[V], e entry[V], added *bool) []entry[V] {
	entries := slices.Clone(old)
	for i := range entries {
		if entries[i].key == e.key {
			*added = false
			entries[i] = e
			return entries
		}
	}
	return append(entries, e)
}

// without removes k, which is known to be present. It returns nil rather than
// an empty branch.
func (b *branch[V]) without(k Key, hash uint64, shift int) *branch[V] {
	i, _ := b.find(hash, shift)
	n := &branch[V]{b.used, slices.Clone(b.slots)}
	at := &n.slots[i]
	if at.deeper != nil {
		if at.deeper = at.deeper.without(k, hash, shift+levelBits); at.deeper != nil {
			return n
		}
	} else if at.entries = slices.DeleteFunc(slices.Clone(at.entries), func(e entry[V]) bool { return e.key == k }); len(at.entries) > 0 {
		return n
	}
	n.used &^= 1 << (hash >> shift & levelMask)
	if n.slots = slices.Delete(n.slots, i, i+1); n.used == 0 {
		return nil
	}
	return n
}

func (b *branch[V]) each(yield func(Key, V) bool) bool {
	if b == nil {
		return true
	}
	for i := range b.slots {
		if !b.slots[i].deeper.each(yield) {
			return false
		}
		for _, e := range b.slots[i].entries {
			if !yield(e.key, e.value) {
				return false
			}
		}
	}
	return true
}

// hashKey is FNV-1a over "namespace/name", finished with a mixer because the
// trie eats the low bits first. It is the same in every process, so the order
// of All is repeatable.
func hashKey(k Key) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(k.Namespace) {
		h = (h ^ uint64(k.Namespace[i])) * 1099511628211
	}
	h = (h ^ '/') * 1099511628211
	for i := range len(k.Name) {
		h = (h ^ uint64(k.Name[i])) * 1099511628211
	}
	h ^= h >> 32
	return h * 0x9e3779b97f4a7c15 >> 4
}
