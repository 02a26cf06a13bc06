package due_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quayside.io/speaker/due"
)

func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

// The twin is a list that is searched from its beginning.
func TestAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q due.Queue[int]
		all := make([]due.Entry[int], 8)
		for i := range all {
			all[i].Value = i
		}
		var list []*due.Entry[int] // in the order of Set
		drop := func(e *due.Entry[int]) {
			list = slices.DeleteFunc(list, func(o *due.Entry[int]) bool { return o == e })
		}
		one := rapid.Custom(func(t *rapid.T) *due.Entry[int] { return &all[rapid.IntRange(0, len(all)-1).Draw(t, "entry")] })
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				e := one.Draw(t, "which")
				drop(e)
				q.Set(e, at(rapid.IntRange(0, 5).Draw(t, "at")))
				list = append(list, e)
			},
			"remove": func(t *rapid.T) {
				e := one.Draw(t, "which")
				drop(e)
				q.Remove(e)
			},
			"first goes": func(*rapid.T) {
				if e := q.First(); e != nil {
					drop(e)
					q.Remove(e)
				}
			},
			"": func(t *rapid.T) {
				var want *due.Entry[int]
				for _, e := range list {
					if want == nil || e.At().Before(want.At()) {
						want = e
					}
				}
				if got := q.First(); got != want {
					t.Fatalf("first is %v, want %v", got, want)
				}
			},
		})
	})
}

func TestMovingAllocatesNothing(t *testing.T) {
	var q due.Queue[string]
	entries := make([]due.Entry[string], 100)
	for i := range entries {
		q.Set(&entries[i], at(i))
	}
	n := 0
	if allocs := testing.AllocsPerRun(1000, func() {
		n++
		e := q.First()
		q.Remove(e)
		q.Set(e, at(1000+n))
		q.Set(&entries[n%100], at(2000+n))
	}); allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

// Whatever is due is taken from the front; to set it again is to move it.
func Example() {
	var q due.Queue[string]
	tea, cake := &due.Entry[string]{Value: "tea"}, &due.Entry[string]{Value: "cake"}
	q.Set(tea, at(10))
	q.Set(cake, at(20))
	q.Set(tea, at(30))
	for e := q.First(); e != nil; e = q.First() {
		fmt.Println(e.Value, e.At().Unix())
		q.Remove(e)
	}
	// Output:
	// cake 20
	// tea 30
}
