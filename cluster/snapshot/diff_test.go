package snapshot

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestDiffAgainstMaps compares Diff with two plain maps.
func TestDiffAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(s Store[*int], m map[Key]*int) Store[*int] {
			for range rapid.IntRange(0, 40).Draw(t, "changes") {
				k := Key{Namespace: "n", Name: fmt.Sprint(rapid.IntRange(0, 200).Draw(t, "key"))}
				if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
					s = s.Without(k)
					delete(m, k)
				} else {
					m[k] = new(int)
					s = s.With(k, m[k])
				}
			}
			return s
		}
		before := map[Key]*int{}
		a := draw(Store[*int]{}, before)
		after := maps.Clone(before)
		b := draw(a, after)
		if rapid.Bool().Draw(t, "unrelated") {
			after = map[Key]*int{}
			b = draw(Store[*int]{}, after)
		}
		got := map[Key]int{}
		for k := range Diff(a, b) {
			got[k]++
		}
		for i := range 201 {
			k := Key{Namespace: "n", Name: fmt.Sprint(i)}
			want := 0
			if before[k] != after[k] {
				want = 1
			}
			if got[k] != want {
				t.Fatalf("Diff yields %s %d times, want %d", k, got[k], want)
			}
		}
		n := 0
		for range Diff(a, b) {
			if n++; n > 1 {
				t.Fatal("Diff goes on after break")
			}
			break
		}
	})
}

// TestDiffStopsInside: whoever breaks off has all branches above him left, too.
func TestDiffStopsInside(t *testing.T) {
	var s Store[*int]
	for i := range 1000 { // deep enough that every slot of the root has a branch
		s = s.With(Key{Namespace: "n", Name: fmt.Sprint(i)}, new(int))
	}
	changed := s
	for i := range 1000 {
		changed = changed.With(Key{Namespace: "n", Name: fmt.Sprint(i)}, new(int))
	}
	for stop := 1; stop < 1000; stop += 37 {
		n := 0
		for range Diff(s, changed) {
			if n++; n == stop {
				break // an iterator that goes on after this panics
			}
		}
		if n != stop {
			t.Fatalf("Diff yields %d keys, want %d and more", n, stop)
		}
	}
}
