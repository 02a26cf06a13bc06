package lbpool

import (
	"math"
	"math/bits"
)

// sparse is a set of small numbers that can name its lowest absentee at once.
//
// Level 0 has one bit per number. A bit of level i+1 says that a word of level
// i is full. Of a large set only words with a bit in them exist, so it costs
// memory for what it holds, not for what it could hold; the lowest number that
// is missing is found by following the lowest clear bit down from the single
// top word.
type sparse struct {
	levels []words
}

const (
	wordBits = 6 // 64 bits in a word
	// Up to this many words, an array is smaller than the map would become.
	denseWords = 1 << 14
)

// words is an array of words, or a map if the array would be large.
type words struct {
	dense []uint64
	far   map[uint64]uint64
}

func newWords(n uint64) words {
	if n <= denseWords {
		return words{dense: make([]uint64, n)}
	}
	return words{far: map[uint64]uint64{}}
}

func (w *words) get(i uint64) uint64 {
	if w.far == nil {
		return w.dense[i]
	}
	return w.far[i]
}

func (w *words) set(i, word uint64) {
	if w.far == nil {
		w.dense[i] = word
	} else {
		w.far[i] = word
	}
}

// newSparse returns an empty set for numbers below size, which is at least 1.
func newSparse(size uint64) sparse {
	var s sparse
	for last := size - 1; ; {
		last >>= wordBits
		s.levels = append(s.levels, newWords(last+1))
		if last == 0 {
			return s
		}
	}
}

// add puts n into the set and reports whether it was missing.
func (s *sparse) add(n uint64) bool {
	for i := range s.levels {
		index, bit := n>>wordBits, uint64(1)<<(n&63)
		word := s.levels[i].get(index)
		if i == 0 && word&bit != 0 {
			return false
		}
		word |= bit
		s.levels[i].set(index, word)
		if ^word != 0 {
			break
		}
		n = index
	}
	return true
}

// lowestMissing returns the lowest number that is not in the set. If that is
// size or more, the set is full.
func (s *sparse) lowestMissing() uint64 {
	index := uint64(0)
	for i := len(s.levels) - 1; i >= 0; i-- {
		level := &s.levels[i]
		if level.far == nil && index >= uint64(len(level.dense)) {
			return math.MaxUint64 // the last word that there is, is full
		}
		clear := bits.TrailingZeros64(^level.get(index))
		if clear == 64 { // only the top word can be full
			return math.MaxUint64
		}
		index = index<<wordBits + uint64(clear)
	}
	return index
}

func (s *sparse) reset() {
	for _, level := range s.levels {
		clear(level.dense)
		clear(level.far)
	}
}
