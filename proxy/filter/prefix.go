package filter

import "net/netip"

// ParsePrefix reads a CIDR, or an address without a zone as the one that holds nothing else. It is
// masked.
func ParsePrefix(text string) (prefix netip.Prefix, ok bool) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.Masked(), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// Unmapped returns a CIDR of addresses of IPv4 that is written as one of IPv6, as in
// ::ffff:10.0.0.0/104, as what it is (RFC 4291 section 2.5.5.2): clients are known by their
// address of IPv4.
func Unmapped(p netip.Prefix) netip.Prefix {
	if !p.Addr().Is4In6() || p.Bits() < 96 {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
}

// isIn reports whether an address is in one of a list.
func isIn(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
