package lbpool

import (
	"math"
	"math/bits"
)

// sparse is a set of small numbers that can name its lowest absentee at once.
//
// Level 0 has one bit per number. A bit of level i+1 says that a word of level
// i is full. Only words with a bit in them exist, so the set costs memory for
// what it holds, not for what it could hold; the lowest number that is missing
// is found by following the lowest clear bit down from the single top word.
type sparse struct {
	levels []map[uint64]uint64
}

const wordBits = 6 // 64 bits in a word

// newSparse returns an empty set for numbers below size, which is at least 1.
func newSparse(size uint64) sparse {
	s := sparse{levels: []map[uint64]uint64{{}}}
	for words := (size - 1) >> wordBits; words > 0; words >>= wordBits {
		s.levels = append(s.levels, map[uint64]uint64{})
	}
	return s
}

// add puts n into the set and reports whether it was missing.
func (s *sparse) add(n uint64) bool {
	for i := range s.levels {
		index, bit := n>>wordBits, uint64(1)<<(n&63)
		word := s.levels[i][index]
		if i == 0 && word&bit != 0 {
			return false
		}
		word |= bit
		s.levels[i][index] = word
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
		clear := bits.TrailingZeros64(^s.levels[i][index])
		if clear == 64 { // only the top word can be full
			return math.MaxUint64
		}
		index = index<<wordBits + uint64(clear)
	}
	return index
}

func (s *sparse) reset() {
	for _, level := range s.levels {
		clear(level)
	}
}
