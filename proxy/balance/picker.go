package balance

import (
	"slices"
	"sync/atomic"
	"time"
)

// Picker gives the endpoints of one backend in turn. It outlives the sets that
// it picks from. All methods may be called at once by many goroutines.
type Picker struct {
	next   atomic.Uint64
	active atomic.Int64 // requests under way, where somebody counts them
}

// Start sets where the turn begins. Proxies that begin at different offsets do
// not all send their first request to the same pod.
func (p *Picker) Start(offset uint64) { p.next.Store(offset) }

// Next returns the index in s.Endpoints of the next endpoint in turn that is not
// among tried and is not ejected, or -1 if every endpoint was tried. Once only
// ejected endpoints are left it offers those: a proxy whose own network failed
// must not refuse to try.
func (p *Picker) Next(s *Set, now time.Time, tried []int) int {
	if s == nil {
		return -1
	}
	n := uint64(len(s.Endpoints))
	// A new turn for each endpoint skipped, rather than a step to its neighbour:
	// the load of an ejected endpoint spreads over all others.
	for range n {
		i := int((p.next.Add(1) - 1) % n)
		if slices.Contains(tried, i) {
			continue
		}
		if h := s.Endpoints[i].Health; h.Admit(now) || h.doubted() && s.panics() {
			return i
		}
	}
	return lastResort(s, p.next.Load(), tried)
}

// lastResort is for when turns taken by other goroutines made this one miss an
// endpoint, or when none is left but the ejected.
func lastResort(s *Set, start uint64, tried []int) int {
	n := uint64(len(s.Endpoints))
	ejected := -1
	for k := range n {
		i := int((start%n + k) % n) // start+k may overflow, and miss one
		if slices.Contains(tried, i) {
			continue
		}
		if !s.Endpoints[i].Health.Ejected() {
			return i
		}
		if ejected < 0 {
			ejected = i
		}
	}
	return ejected
}
