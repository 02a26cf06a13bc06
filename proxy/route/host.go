package route

import (
	"crypto/tls"
	"strings"
)

// A host is everything that is said about one host of a rule. It is immutable.
// What every lookup reads comes first, and as little of it as can be: with ten
// thousand hosts the time goes into waiting for memory.
type host struct {
	pathSet
	keyLen int  // text begins with the key, see hostKey
	sealed bool // requests never fall through to less specific hosts
	regex  bool // paths are patterns
	*hostRest
}

// hostRest is what few lookups read.
type hostRest struct {
	name     string    // "", "shop.example.com" or "*.example.com"
	fallback *Route    // default backend, if no rule of any host matches
	patterns []pattern // where paths are patterns: all but those of pathSet
	keepers  []string  // namespaces that alone may have what its rules leave over; nil: any
	// keepsWildcards says that a wildcard host of another namespace may not have it
	// either, not only rules without host.
	keepsWildcards bool
	loose          *pathSet           // the same paths spelled loosely, if that differs
	certs          []*tls.Certificate // of different kinds, in the order of preference
	clients        *clientCAs         // nil: they are asked for no certificate
	passed         *Passthrough       // nil: connections are decrypted
	ciphers        []uint16           // of handshakes; nil: as for all
	http2          claim              // whether they offer it
	passages       []passages         // of its Ingresses
	backends       []int              // of its canaries with sessions, which no unit has
	tls            bool               // of a wildcard: an Ingress has both rules and a tls entry for it
}

// A smallHost is a host together with the text and the few paths that most hosts
// have: one object, so that a lookup waits for memory once.
type smallHost struct {
	host
	entriesHere [smallPaths]pathEntry
	textHere    [smallText]byte
}

const (
	smallPaths = 3
	smallText  = 40
)

// newHost returns the host of that name with these routes, in order.
func newHost(name string, routes []*Route) *host {
	key := hostKey(name)
	size := len(key)
	for _, r := range routes {
		size += len(r.match)
	}
	var h *host
	if len(routes) <= smallPaths && size <= smallText {
		small := &smallHost{}
		h = &small.host
		h.text, h.entries = small.textHere[:0], small.entriesHere[:0]
	} else {
		h = &host{}
		h.text, h.entries = make([]byte, 0, size), make([]pathEntry, 0, len(routes))
	}
	h.keyLen, h.hostRest = len(key), &hostRest{name: name}
	h.text = append(h.text, key...)
	h.fill(places(routes))
	h.loose = loosely(routes)
	return h
}

// key is the name under which a hostMap finds the host.
func (h *host) key() []byte { return h.text[:h.keyLen] }

// hostKey is the key of a name: a wildcard is found under what follows its
// asterisk.
func hostKey(name string) string { return strings.TrimPrefix(name, "*") }

// allRoutes returns every route, ordered by path, then those of scripts, the default backend last.
func (h *host) allRoutes() []*Route {
	all := h.routes()
	for _, p := range h.patterns {
		for r := p.route; r != nil; r = r.otherwise {
			all = append(all, r)
		}
	}
	for _, p := range h.passages {
		all = append(all, p.routes...)
	}
	if h.fallback != nil {
		all = append(all, h.fallback)
	}
	return all
}
