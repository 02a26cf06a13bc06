package filter

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
)

// Table gives a variable the value that goes with a text: nginx's map, geo and split_clients.
// It is asked once for a request, when the value is first needed.
type Table struct {
	Of *Template
	// Default is of what nothing else is about.
	Default *Template
	// Texts are values by texts in lower case, Hosts by what names of hosts begin or end
	// with, of which the longest counts, and Patterns in their order.
	Texts    map[string]*Template
	Hosts    []TableHost
	Patterns []TablePattern
	// Networks are values by address, of which the smallest counts.
	Networks []TableNetwork
	// Shares are parts of all texts, each with where it ends on the way to 1<<32.
	Shares []TableShare
}

// TableHost is the value of hosts: Name begins with a dot where they end with it, and ends with
// one where they begin so.
type TableHost struct {
	Name  string
	Value *Template
}

// TablePattern is the value of texts in which a pattern is found. Its groups may stand in it.
type TablePattern struct {
	Pattern *regexp.Regexp
	Value   *Template
}

// TableNetwork is the value of addresses.
type TableNetwork struct {
	Prefix netip.Prefix
	Value  *Template
}

// TableShare is the value of a share of all texts.
type TableShare struct {
	End   uint32
	Value *Template
}

// value returns what goes with an exchange.
func (t *Table) value(ex *exchange.Exchange, at *Place) []byte {
	of := t.Of.append(nil, ex, at, appendAsIs, appendAsIs)
	fill := func(v *Template, at *Place) []byte {
		if v == nil {
			return []byte{}
		}
		return v.append([]byte{}, ex, at, appendAsIs, appendAsIs)
	}
	switch {
	case len(t.Networks) > 0:
		return fill(t.ofAddress(string(of)), at)
	case len(t.Shares) > 0:
		hash := murmur2(of)
		i := slices.IndexFunc(t.Shares, func(s TableShare) bool { return hash < s.End || s.End == 0 })
		if i < 0 {
			return fill(t.Default, at)
		}
		return fill(t.Shares[i].Value, at)
	}
	lower := string(bytes.ToLower(of))
	if v, ok := t.Texts[lower]; ok {
		return fill(v, at)
	}
	if v := t.ofHost(strings.TrimSuffix(lower, ".")); v != nil {
		return fill(v, at)
	}
	for _, p := range t.Patterns {
		if p.Pattern.Match(of) {
			keepGroups(&ex.Script, p.Pattern, of, nil, true) // as nginx has one place for them
			in := *at
			in.Pattern, in.searched = p.Pattern, of
			return fill(p.Value, &in)
		}
	}
	return fill(t.Default, at)
}

// ofHost returns the value of a host that ends or begins with a name of Hosts.
func (t *Table) ofHost(host string) (value *Template) {
	best := ""
	for _, h := range t.Hosts {
		if isWithin(host, h.Name) && (best == "" || isCloser(h.Name, best)) {
			value, best = h.Value, h.Name
		}
	}
	return value
}

// isWithin reports whether a host ends with name, which begins with a dot, or begins with it.
func isWithin(host, name string) bool {
	if strings.HasPrefix(name, ".") {
		return strings.HasSuffix(host, name)
	}
	return strings.HasPrefix(host, name)
}

// isCloser reports whether of two names that a host is within nginx takes a: what hosts end with
// before what they begin with, and the longer.
func isCloser(a, b string) bool {
	endA, endB := strings.HasPrefix(a, "."), strings.HasPrefix(b, ".")
	if endA != endB {
		return endA
	}
	return len(a) > len(b)
}

// ofAddress returns the value of an address.
func (t *Table) ofAddress(text string) *Template {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return t.Default
	}
	value, longest := t.Default, -1
	for _, n := range t.Networks {
		if n.Prefix.Bits() > longest && n.Prefix.Contains(addr.Unmap()) {
			value, longest = n.Value, n.Prefix.Bits()
		}
	}
	return value
}

// murmur2 is MurmurHash2 with the seed 0, by which nginx shares texts out.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		h = h*m ^ (k^k>>24)*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
