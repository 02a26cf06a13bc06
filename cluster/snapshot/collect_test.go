package snapshot

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestCollectIsWith compares Collect with a Store built object by object, down
// to the order of All and to what later changes make of it.
func TestCollectIsWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := map[Key]int{}
		var want Store[int]
		for i := range rapid.IntRange(0, 300).Draw(t, "objects") {
			k := Key{Namespace: "n", Name: fmt.Sprint(rapid.IntRange(0, 500).Draw(t, "key"))}
			objects[k] = i
			want = want.With(k, i)
		}
		got := Collect(len(objects), maps.All(objects))
		gone := Key{Namespace: "n", Name: "7"}
		for range 2 {
			if diff := cmp.Diff(list(want), list(got)); diff != "" || got.Len() != want.Len() {
				t.Fatalf("With -, Collect +:\n%s", diff)
			}
			for k, v := range objects {
				if have, ok := got.Get(k); ok != (k != gone || got.Len() == len(objects)) || ok && have != v {
					t.Fatalf("Get(%s) = %d, %v", k, have, ok)
				}
			}
			want, got = want.Without(gone), got.Without(gone)
		}
	})
}

func list[V any](s Store[V]) []string {
	var all []string
	for k, v := range s.All() {
		all = append(all, fmt.Sprint(k, v))
	}
	return all
}
