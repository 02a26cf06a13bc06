package bfd

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is room for one datagram and what the kernel says about it. The
// library's own calls make an address for every datagram.
type message struct {
	from, to netip.Addr // without zones
	index    int        // of the interface it came by
	ttl      int        // -1: not known
	lost     uint32     // how many the socket has dropped so far
	payload  []byte     // valid until the next

	header unix.Msghdr
	vector unix.Iovec
	name   unix.RawSockaddrInet6 // has room for the other family
	data   [64]byte              // a BFD packet and its authentication need no more
	oob    [256]byte
}

func newMessage() *message {
	m := &message{}
	m.vector.Base = &m.data[0]
	m.vector.SetLen(len(m.data))
	m.header.Iov = &m.vector
	m.header.SetIovlen(1)
	m.header.Name = (*byte)(unsafe.Pointer(&m.name))
	m.header.Control = &m.oob[0]
	return m
}

// receive reads the next datagram without waiting.
func (m *message) receive(fd int, ipv6 bool) unix.Errno {
	m.header.Namelen = unix.SizeofSockaddrInet6
	m.header.SetControllen(len(m.oob))
	n, _, err := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.header)), unix.MSG_DONTWAIT)
	if err != 0 {
		return err
	}
	m.payload = m.data[:n]
	m.to, m.index, m.ttl = netip.Addr{}, 0, -1
	if ipv6 {
		m.from = netip.AddrFrom16(m.name.Addr)
	} else {
		m.from = netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&m.name)).Addr)
	}
	m.readControl(m.oob[:m.header.Controllen])
	return 0
}

// readControl reads what the kernel says about the datagram.
func (m *message) readControl(oob []byte) {
	for len(oob) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return
		}
		oob = rest
		switch {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TTL && len(data) >= 4,
			h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_HOPLIMIT && len(data) >= 4:
			m.ttl = int(int32(binary.NativeEndian.Uint32(data)))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			m.index = int(int32(binary.NativeEndian.Uint32(data)))
			m.to = netip.AddrFrom4([4]byte(data[8:12])) // as the header says
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			m.to = netip.AddrFrom16([16]byte(data[:16]))
			m.index = int(binary.NativeEndian.Uint32(data[16:]))
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			m.lost = binary.NativeEndian.Uint32(data)
		}
	}
}
