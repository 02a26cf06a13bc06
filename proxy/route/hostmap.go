package route

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// maxHost is the length of the longest DNS name, plus its trailing dot.
const maxHost = 254

// appendHost appends the canonical form of a host as clients write it: lower
// case, without port, brackets and trailing dot. A host that is too long for dst
// comes out empty; no rule names it.
func appendHost[S string | []byte](dst []byte, host S) []byte {
	start, end := 0, len(host)
	if end > 0 && host[0] == '[' {
		start++
	}
	for i := start; i < end; i++ {
		if c := host[i]; c == ']' || c == ':' && start == 0 {
			end = i
		}
	}
	if end > start && host[end-1] == '.' {
		end--
	}
	if end-start > cap(dst)-len(dst) {
		return dst
	}
	for i := start; i < end; i++ {
		c := host[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

// A hostMap is an immutable map from names to hosts. To change it, edit it: that
// copies the list of buckets and the buckets touched, but no host. A lookup
// costs the same three loads whatever the number of hosts.
type hostMap struct {
	buckets [][]hostEntry // their number is a power of two
	n       int
}

type hostEntry struct {
	hash uint64
	name string
	host *host
}

// perBucket is the mean at which the number of buckets doubles.
const perBucket = 4

func (m hostMap) get(name []byte) *host {
	if len(m.buckets) == 0 {
		return nil
	}
	hash := hashHost(name)
	bucket := m.buckets[hash&uint64(len(m.buckets)-1)]
	for i := range bucket {
		if e := &bucket[i]; e.hash == hash && e.name == string(name) {
			return e.host
		}
	}
	return nil
}

func (m hostMap) all() iter.Seq[*host] {
	return func(yield func(*host) bool) {
		for _, bucket := range m.buckets {
			for i := range bucket {
				if !yield(bucket[i].host) {
					return
				}
			}
		}
	}
}

// edit returns a copy whose list of buckets may be changed by set and unset,
// and that has room for more names.
func (m hostMap) edit(more int) *hostMap {
	size := max(8, len(m.buckets))
	for size*perBucket < m.n+more {
		size *= 2
	}
	if size == len(m.buckets) {
		return &hostMap{slices.Clone(m.buckets), m.n}
	}
	n := &hostMap{make([][]hostEntry, size), m.n}
	for _, bucket := range m.buckets {
		for _, e := range bucket {
			at := &n.buckets[e.hash&uint64(size-1)]
			*at = append(*at, e)
		}
	}
	return n
}

func (m *hostMap) unset(name string) {
	hash := hashHost([]byte(name))
	at := &m.buckets[hash&uint64(len(m.buckets)-1)]
	rest := slices.DeleteFunc(slices.Clone(*at), func(e hostEntry) bool { return e.name == name })
	m.n -= len(*at) - len(rest)
	*at = rest
}

func (m *hostMap) set(name string, h *host) {
	m.unset(name)
	hash := hashHost([]byte(name))
	at := &m.buckets[hash&uint64(len(m.buckets)-1)]
	*at = append(*at, hostEntry{hash, name, h}) // unset left a copy
	m.n++
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
