package lab

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// Raw frames, not the libraries that the product uses: what judges it should
// not share its mistakes.

const (
	etherLen   = 14
	arpLen     = 28
	arpRequest = 1
	arpReply   = 2
)

func arpFrame(mac net.HardwareAddr, from, target netip.Addr) []byte {
	f := slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, []byte{0x08, 0x06})
	f = append(f, 0, 1, 8, 0, 6, 4, 0, arpRequest)
	f = slices.Concat(f, mac, from.AsSlice(), make([]byte, 6), target.AsSlice())
	return f
}

// replyFor returns who says that it has target: by an answer, not by asking.
func replyFor(frame []byte, target netip.Addr) (mac string, ok bool) {
	if len(frame) < etherLen+arpLen {
		return "", false
	}
	arp := frame[etherLen:]
	if binary.BigEndian.Uint16(arp[6:]) != arpReply || !slices.Equal(arp[14:18], target.AsSlice()) {
		return "", false
	}
	return net.HardwareAddr(arp[8:14]).String(), true
}
