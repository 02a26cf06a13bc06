package lab

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// Neighbour discovery, RFC 4861: 4.3 solicitation, 4.4 advertisement.
const (
	ip6Len          = 40
	ndTargetAt      = etherLen + ip6Len + 8
	ndOptionsAt     = ndTargetAt + 16
	ndSolicitation  = 135
	ndAdvertisement = 136
	ndOptionSource  = 1
	ndOptionTarget  = 2
	ndBytes         = 32 // of ICMPv6, with one link-layer address
	protocolICMPv6  = 58
)

// solicitation asks the solicited-node group of target.
func solicitation(mac net.HardwareAddr, from, target netip.Addr) []byte {
	t := target.As16()
	group := [16]byte{0xff, 2, 11: 1, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]}
	return discovery(mac, from, group, ndSolicitation, 0, target, ndOptionSource)
}

// advertisement tells every host that target is here.
func advertisement(mac net.HardwareAddr, target netip.Addr) []byte {
	const override = 0x20
	return discovery(mac, target, [16]byte{0xff, 2, 15: 1}, ndAdvertisement, override, target, ndOptionTarget)
}

// discovery is a message to a multicast group, with mac as its only option.
func discovery(mac net.HardwareAddr, from netip.Addr, to [16]byte, kind, flags byte, target netip.Addr, option byte) []byte {
	f := slices.Concat([]byte{0x33, 0x33}, to[12:], mac, []byte{0x86, 0xdd})
	f = append(f, 0x60, 0, 0, 0, 0, ndBytes, protocolICMPv6, 255)
	f = slices.Concat(f, from.AsSlice(), to[:])
	f = append(f, kind, 0, 0, 0, flags, 0, 0, 0)
	f = slices.Concat(f, target.AsSlice(), []byte{option, 1}, mac)
	binary.BigEndian.PutUint16(f[etherLen+ip6Len+2:], checksum6(f[etherLen:]))
	return f
}

// checksum6 is that of the ICMPv6 message in an IPv6 packet whose field for it
// is zero.
func checksum6(packet []byte) uint16 {
	sum := uint32(len(packet)-ip6Len) + protocolICMPv6
	for b := packet[8:]; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// advertisedFor returns the link-layer address that an advertisement gives for
// target.
func advertisedFor(frame []byte, target netip.Addr) (mac string, ok bool) {
	if len(frame) < ndOptionsAt+8 || frame[etherLen+6] != protocolICMPv6 || frame[etherLen+ip6Len] != ndAdvertisement {
		return "", false
	}
	if !slices.Equal(frame[ndTargetAt:ndOptionsAt], target.AsSlice()) || frame[ndOptionsAt] != ndOptionTarget {
		return "", false
	}
	return net.HardwareAddr(frame[ndOptionsAt+2 : ndOptionsAt+8]).String(), true
}
