package lbpool

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestSparseIsItsTwin asks a set of numbers and a plain map the same, for
// sizes around the borders of words and levels.
func TestSparseIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]uint64{1, 2, 63, 64, 65, 100, 4095, 4096, 4097, 1 << 20, math.MaxInt64}).Draw(t, "size")
		s, twin := newSparse(size), map[uint64]bool{}
		add := func(n uint64) {
			if s.add(n) == twin[n] {
				t.Fatalf("adding %d: it was there: %v", n, twin[n])
			}
			twin[n] = true
		}
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			from := rapid.Uint64Range(0, size-1).Draw(t, "from")
			if rapid.Bool().Draw(t, "from the beginning") {
				from = 0
			}
			for n := from; n < min(size, from+rapid.Uint64Range(1, 300).Draw(t, "run")); n++ {
				add(n)
			}
			want := uint64(0)
			for twin[want] {
				want++
			}
			if got := s.lowestMissing(); got != want && (got < size || want < size) {
				t.Fatalf("the lowest missing of %d is %d, not %d", size, want, got)
			}
		}
		s.reset()
		if got := s.lowestMissing(); got != 0 {
			t.Fatalf("after a reset, %d is the lowest missing", got)
		}
	})
}

func TestSparseFull(t *testing.T) {
	for _, size := range []uint64{1, 64, 65, 128, 4096, 8192} {
		s := newSparse(size)
		for n := range size {
			if got := s.lowestMissing(); got != n {
				t.Fatalf("size %d: %d instead of %d", size, got, n)
			}
			s.add(n)
		}
		if got := s.lowestMissing(); got < size {
			t.Errorf("size %d: full, and yet %d is missing", size, got)
		}
	}
}
