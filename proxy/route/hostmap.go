package route

import (
	"encoding/binary"
	"iter"
	"maps"
	"math/bits"
	"slices"
)

// maxHost is the length of the longest DNS name, plus its trailing dot.
const maxHost = 254

// appendHost appends the canonical form of a host as clients write it: lower
// case, without port, brackets and trailing dot. A host that is too long for dst
// comes out empty; no rule names it.
func appendHost[S string | []byte](dst []byte, host S) []byte {
	i, stop := 0, byte(':')
	if len(host) > 0 && host[0] == '[' {
		i, stop = 1, ']'
	}
	n, room := len(dst), dst[:cap(dst)]
	for ; i < len(host); i++ {
		c := host[i]
		if c == stop || c == ']' {
			break
		}
		if n == len(room) {
			return dst
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		room[n] = c
		n++
	}
	if n > len(dst) && room[n-1] == '.' {
		n--
	}
	return room[:n]
}

// A hostMap is an immutable hash table from keys to hosts. It is cut into chunks
// of fixed size, so that a lookup reads one slot in the list of chunks, which is
// small, then one in the chunk, whatever the number of hosts. To change it, edit
// it: that copies the list and the chunks touched, but no host.
type hostMap struct {
	chunks []*hostChunk // their number is a power of two
	n      int
	// spill holds hosts whose chunk is full although the table is nearly empty.
	// Only names made up to force collisions do that, and they must not make the
	// table grow without end.
	spill map[string]*host
}

// A hostChunk holds the hosts of some hashes, each at or after the slot that its
// hash names, without a gap between.
type hostChunk struct {
	slots [chunkSize]hostSlot
	n     int
}

type hostSlot struct {
	hash uint64
	host *host // nil: empty
}

const (
	chunkSize = 128
	chunkFull = 112 // then there are too few chunks,
	chunkFew  = 16  // unless they hold fewer than this on average
)

// Three independent parts of a hash choose the chunk, the slot and the host.
func (m hostMap) chunk(hash uint64) int { return int(hash>>7) & (len(m.chunks) - 1) }

func (m hostMap) get(key []byte) *host {
	if m.n == 0 {
		return nil
	}
	hash := hashHost(key)
	c := m.chunks[m.chunk(hash)]
	if c == nil {
		return m.spill[string(key)]
	}
	for i := hash % chunkSize; c.slots[i].host != nil; i = (i + 1) % chunkSize {
		if s := &c.slots[i]; s.hash == hash && string(s.host.key()) == string(key) {
			return s.host
		}
	}
	return m.spill[string(key)]
}

func (m hostMap) all() iter.Seq[*host] {
	return func(yield func(*host) bool) {
		for _, c := range m.chunks {
			if c == nil {
				continue
			}
			for i := range c.slots {
				if h := c.slots[i].host; h != nil && !yield(h) {
					return
				}
			}
		}
		for _, h := range m.spill {
			if !yield(h) {
				return
			}
		}
	}
}

// A hostEdit is a hostMap in the making. Chunks that it made are its own.
type hostEdit struct {
	hostMap
	own map[*hostChunk]bool
}

func (m hostMap) edit() *hostEdit {
	e := &hostEdit{hostMap{slices.Clone(m.chunks), m.n, maps.Clone(m.spill)}, map[*hostChunk]bool{}}
	if len(e.chunks) == 0 {
		e.chunks = make([]*hostChunk, 1)
	}
	return e
}

// touch returns the chunk of a hash, as one that may be changed.
func (e *hostEdit) touch(hash uint64) *hostChunk {
	at := &e.chunks[e.chunk(hash)]
	if *at == nil || !e.own[*at] {
		c := &hostChunk{}
		if *at != nil {
			*c = **at
		}
		*at = c
		e.own[c] = true
	}
	return *at
}

func (e *hostEdit) set(h *host) {
	e.unset(h.key())
	e.n++
	hash := hashHost(h.key())
	for e.touch(hash).n >= chunkFull {
		if e.n < chunkFew*len(e.chunks) {
			if e.spill == nil {
				e.spill = map[string]*host{}
			}
			e.spill[string(h.key())] = h
			return
		}
		e.grow()
	}
	e.touch(hash).add(hostSlot{hash, h})
}

func (c *hostChunk) add(s hostSlot) {
	i := s.hash % chunkSize
	for c.slots[i].host != nil {
		i = (i + 1) % chunkSize
	}
	c.slots[i] = s
	c.n++
}

// unset removes a host, if it is there. The chunk is rebuilt, because a gap would
// hide what comes after it.
func (e *hostEdit) unset(key []byte) {
	if e.get(key) == nil {
		return
	}
	e.n--
	if _, spilled := e.spill[string(key)]; spilled {
		delete(e.spill, string(key))
		return
	}
	c := e.touch(hashHost(key))
	old := *c
	*c = hostChunk{}
	for _, s := range old.slots {
		if s.host != nil && string(s.host.key()) != string(key) {
			c.add(s)
		}
	}
}

// grow doubles the number of chunks.
func (e *hostEdit) grow() {
	old := e.hostMap
	e.chunks = make([]*hostChunk, 2*len(old.chunks))
	e.own = map[*hostChunk]bool{}
	old.spill = nil // stays where it is
	for h := range old.all() {
		hash := hashHost(h.key())
		e.touch(hash).add(hostSlot{hash, h})
	}
}

// hashHost mixes eight bytes at a time. It need not resist an attacker: who
// sends requests chooses the names looked up, not those stored.
func hashHost(name []byte) uint64 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(len(name)) * prime
	for len(name) >= 8 {
		h = mix(h^binary.LittleEndian.Uint64(name), prime)
		name = name[8:]
	}
	var tail uint64
	for i, c := range name {
		tail |= uint64(c) << (8 * i)
	}
	return mix(h^tail, prime)
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
