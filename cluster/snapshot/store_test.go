package snapshot

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The stupid twin of a Store is a map.
func TestStoreIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var store Store[int]
		twin := map[Key]int{}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			k := Key{fmt.Sprint("ns", rapid.IntRange(0, 3).Draw(t, "ns")), fmt.Sprint("n", rapid.IntRange(0, 40).Draw(t, "name"))}
			before, frozen := store, maps.Clone(twin)
			if rapid.Bool().Draw(t, "put") {
				store, twin[k] = store.With(k, step), step
			} else {
				store = store.Without(k)
				delete(twin, k)
			}
			same(t, store, twin)
			same(t, before, frozen) // a step never changes the value it came from
			if a, b := common(before, twin), common(store, frozen); !slices.Equal(a, b) {
				t.Fatalf("one Store yields %v, the next %v", a, b)
			}
		}
	})
}

// common is which keys of a Store another one has, in the order of All.
func common(s Store[int], other map[Key]int) (keys []Key) {
	for k := range s.All() {
		if _, both := other[k]; both {
			keys = append(keys, k)
		}
	}
	return keys
}

func same(t *rapid.T, s Store[int], twin map[Key]int) {
	if s.Len() != len(twin) {
		t.Fatalf("Len is %d, want %d", s.Len(), len(twin))
	}
	if got := maps.Collect(s.All()); !maps.Equal(got, twin) {
		t.Fatalf("All is %v, want %v", got, twin)
	}
	for k, want := range twin {
		if got, ok := s.Get(k); !ok || got != want {
			t.Fatalf("Get(%v) is %v %v, want %v", k, got, ok, want)
		}
	}
	keys := slices.SortedFunc(maps.Keys(twin), Key.Compare)
	for i, v := range s.Sorted() {
		if v != twin[keys[i]] {
			t.Fatalf("Sorted()[%d] is %v, want %v", i, v, twin[keys[i]])
		}
	}
	n := rapid.SampledFrom([]int{1, 2, 3, 10, math.MaxInt}).Draw(t, "first")
	odd := slices.DeleteFunc(s.Sorted(), func(v int) bool { return v%2 == 0 })
	if got, all := s.First(n, func(v int) bool { return v%2 != 0 }); all != len(odd) || !slices.Equal(got, odd[:min(n, len(odd))]) {
		t.Fatalf("First(%d) is %v of %d, want those of %v", n, got, all, odd)
	}
}

// Two keys with one hash share a leaf; the trie must tell them apart at every
// depth. Real collisions of the 60-bit hash are out of reach, so the test
// builds the branch by hand.
func TestStoreKeepsCollidingKeysApart(t *testing.T) {
	a, b := Key{"x", "a"}, Key{"x", "b"}
	added := true
	root := (*branch[int])(nil).with(slot[int]{hash: 7, entries: []entry[int]{{a, 1}}}, 0, &added)
	root = root.with(slot[int]{hash: 7, entries: []entry[int]{{b, 2}}}, 0, &added)
	got := map[Key]int{}
	root.each(func(k Key, v int) bool { got[k] = v; return true })
	if want := map[Key]int{a: 1, b: 2}; !maps.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	root = root.without(a, 7, 0)
	if root = root.without(b, 7, 0); root != nil {
		t.Fatalf("an emptied branch is %v, want nil", root)
	}
}

func TestStoreReadsWithoutAllocating(t *testing.T) {
	var s Store[int]
	for i := range 10_000 {
		s = s.With(Key{"ns", fmt.Sprint(i)}, i)
	}
	k := Key{"ns", "4711"}
	if n := testing.AllocsPerRun(100, func() { s.Get(k) }); n != 0 {
		t.Fatalf("Get allocates %v times", n)
	}
}
