package proxyheader

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Append appends a header of a version, 1 or 2, about a client that connected to local;
// of another version, nothing. Addresses of two families, which a listener for both may
// bring, are told in that of the longer.
func Append(b []byte, version int, client, local netip.AddrPort) []byte {
	from, to := client.Addr().Unmap(), local.Addr().Unmap()
	known := from.IsValid() && to.IsValid()
	if known && from.Is4() != to.Is4() {
		from, to = netip.AddrFrom16(from.As16()), netip.AddrFrom16(to.As16())
	}
	switch version {
	case 1:
		switch {
		case !known:
			return append(b, "PROXY UNKNOWN\r\n"...)
		case from.Is4():
			return fmt.Appendf(b, "PROXY TCP4 %s %s %d %d\r\n", from, to, client.Port(), local.Port())
		}
		return fmt.Appendf(b, "PROXY TCP6 %s %s %d %d\r\n", from, to, client.Port(), local.Port())
	case 2:
		b = append(b, start2...)
		if !known {
			return append(b, 0x20, 0, 0, 0) // LOCAL: it says nothing of a client
		}
		b = append(b, 0x21)
		family, size := byte(0x11), uint16(12)
		if !from.Is4() {
			family, size = 0x21, 36
		}
		b = binary.BigEndian.AppendUint16(append(b, family), size)
		b = append(append(b, from.AsSlice()...), to.AsSlice()...)
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, client.Port()), local.Port())
	}
	return b
}
