package lbpool

import (
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"strings"

	"encoding/binary"

	"go4.org/netipx"
)

// Family is an address family.
type Family uint8

// The two families, usable as an index.
const (
	IPv4 Family = iota
	IPv6
)

// String returns the family as Kubernetes spells it.
func (f Family) String() string {
	if f == IPv4 {
		return "IPv4"
	}
	return "IPv6"
}

// FamilyOf returns the family of a valid, unmapped address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// ParseRange reads a CIDR prefix ("10.0.0.0/24", host bits are ignored) or an
// inclusive range ("10.0.0.10-10.0.0.20").
func ParseRange(s string) (netipx.IPRange, error) {
	var r netipx.IPRange
	if from, to, ok := strings.Cut(s, "-"); ok {
		first, err := ParseAddr(from)
		if err != nil {
			return r, fmt.Errorf("range %q: %w", s, err)
		}
		last, err := ParseAddr(to)
		if err != nil {
			return r, fmt.Errorf("range %q: %w", s, err)
		}
		if FamilyOf(first) != FamilyOf(last) {
			return r, fmt.Errorf("range %q goes from an %v to an %v address; write one range per family", s, FamilyOf(first), FamilyOf(last))
		}
		if last.Less(first) {
			return r, fmt.Errorf("range %q ends before it begins; write %v-%v", s, last, first)
		}
		r = netipx.IPRangeFrom(first, last)
	} else {
		p, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return r, fmt.Errorf("%q is neither a prefix like 10.0.0.0/24 nor a range like 10.0.0.10-10.0.0.20", s)
		}
		if p.Addr().Is4In6() {
			return r, fmt.Errorf("prefix %q is IPv4-mapped IPv6; write it as IPv4", s)
		}
		r = netipx.RangeOfPrefix(p.Masked())
	}
	return r, checkAssignable(s, r)
}

// ParseReserved reads what ParseRange does, or a single address.
func ParseReserved(s string) (netipx.IPRange, error) {
	if a, err := ParseAddr(s); err == nil {
		return netipx.IPRangeFrom(a, a), nil
	}
	return ParseRange(s)
}

// ParseAddr reads one address, refusing zones and IPv4-mapped IPv6 addresses.
func ParseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	switch {
	case err != nil:
		return a, fmt.Errorf("%s is not an IP address", quote(strings.TrimSpace(s)))
	case a.Zone() != "":
		return a, fmt.Errorf("address %v has a zone, which means nothing beyond one link", a.WithZone(""))
	case a.Is4In6():
		return a, fmt.Errorf("address %v is IPv4-mapped IPv6; write %v", a, a.Unmap())
	}
	return a, nil
}

// checkAssignable refuses ranges with addresses that no host can have.
func checkAssignable(s string, r netipx.IPRange) error {
	for _, never := range [...]struct{ prefix, why string }{
		{"0.0.0.0/8", "0.0.0.0/8 means \"this network\""},
		{"224.0.0.0/4", "224.0.0.0/4 is multicast"},
		{"255.255.255.255/32", "255.255.255.255 is broadcast"},
		{"::/128", ":: means \"no address\""},
		{"ff00::/8", "ff00::/8 is multicast"},
		{"::ffff:0:0/96", "::ffff:0:0/96 is IPv4-mapped IPv6"},
	} {
		if r.Overlaps(netipx.RangeOfPrefix(netip.MustParsePrefix(never.prefix))) {
			return fmt.Errorf("%q contains addresses that no Service can have: %s", s, never.why)
		}
	}
	return nil
}

// isBuggy reports whether some old equipment drops traffic to a: IPv4
// addresses that end in .0 or .255.
func isBuggy(a netip.Addr) bool {
	if !a.Is4() {
		return false
	}
	last := a.As4()[3]
	return last == 0 || last == 255
}

// isAnycast reports whether every router of a network is likely to answer for a as for an
// address of its own: IPv6 addresses that end in 64 zero bits (RFC 4291 section 2.6.1), where
// nodes that forward are routers, as those of a cluster are.
func isAnycast(a netip.Addr) bool {
	if !a.Is6() {
		return false
	}
	x := a.As16()
	return binary.BigEndian.Uint64(x[8:]) == 0
}

// offset is how far a lies behind from, which is of its family and not behind
// it, and false if that exceeds 64 bits.
func offset(from, a netip.Addr) (uint64, bool) {
	if from.Is4() {
		x, y := from.As4(), a.As4()
		return uint64(binary.BigEndian.Uint32(y[:]) - binary.BigEndian.Uint32(x[:])), true
	}
	x, y := from.As16(), a.As16()
	lo, borrow := bits.Sub64(binary.BigEndian.Uint64(y[8:]), binary.BigEndian.Uint64(x[8:]), 0)
	hi, _ := bits.Sub64(binary.BigEndian.Uint64(y[:8]), binary.BigEndian.Uint64(x[:8]), borrow)
	return lo, hi == 0
}

// plus is the address n behind from.
func plus(from netip.Addr, n uint64) netip.Addr {
	if from.Is4() {
		x := from.As4()
		binary.BigEndian.PutUint32(x[:], binary.BigEndian.Uint32(x[:])+uint32(n))
		return netip.AddrFrom4(x)
	}
	x := from.As16()
	lo, carry := bits.Add64(binary.BigEndian.Uint64(x[8:]), n, 0)
	binary.BigEndian.PutUint64(x[8:], lo)
	binary.BigEndian.PutUint64(x[:8], binary.BigEndian.Uint64(x[:8])+carry)
	return netip.AddrFrom16(x)
}

// size counts the addresses of r, saturating at MaxInt64.
func size(r netipx.IPRange) int64 {
	n, ok := offset(r.From(), r.To())
	if !ok || n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n) + 1
}

// countBuggy counts the addresses of r for which isBuggy holds.
func countBuggy(r netipx.IPRange) int64 {
	if !r.From().Is4() {
		return 0
	}
	below := func(x int64) int64 { return (x+255)/256 + x/256 } // buggy ones among 0…x-1
	from, to := r.From().As4(), r.To().As4()
	return below(int64(binary.BigEndian.Uint32(to[:]))+1) - below(int64(binary.BigEndian.Uint32(from[:])))
}

// addSaturating adds two counts that are not negative.
func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
