package live

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"quayside.io/command/explain"
)

// What the kernel says of neighbours, from linux/neighbour.h, which syscall lacks.
const (
	sizeofNdMsg   = 12
	ndaDst        = 1
	ndaLLAddr     = 2
	nudIncomplete = 0x01
	nudFailed     = 0x20
)

// settling is how long a neighbour is waited for that is still being asked.
const settling = time.Second

// neighbour says who answers for an address of a LAN that this machine is on, after
// something was sent to it. An address of the machine itself is nobody else's.
func neighbour(ip netip.Addr) (says string, state explain.State, onLink bool) {
	link, index, ok := linkOf(ip)
	if !ok {
		return "", "", false
	}
	asks := "ARP"
	if ip.Is6() {
		asks = "NDP"
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		mac, nud, err := lookUp(ip, index)
		switch {
		case err != nil:
			return fmt.Sprintf("%s on %s: the neighbours cannot be read: %v", ip, link, err), explain.Unknown, true
		case nud&nudIncomplete != 0 && time.Since(begin) < settling:
		case mac == nil || nud&(nudIncomplete|nudFailed) != 0:
			return fmt.Sprintf("nobody on %s answers for %s by %s; if a node announces it, something between here and there drops what it answers", link, ip, asks), explain.Broken, true
		default:
			return fmt.Sprintf("%s on %s answers for %s by %s", mac, link, ip, asks), explain.Works, true
		}
	}
}

// linkOf is the interface of this machine whose prefix has ip, unless it is its own.
func linkOf(ip netip.Addr) (name string, index int, ok bool) {
	links, err := net.Interfaces()
	if err != nil || ip.IsLoopback() {
		return "", 0, false
	}
	for _, l := range links {
		addresses, err := l.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			switch {
			case err != nil:
			case prefix.Addr().Unmap() == ip:
				return "", 0, false
			case prefix.Masked().Contains(ip) && l.Flags&net.FlagPointToPoint == 0:
				name, index, ok = l.Name, l.Index, true
			}
		}
	}
	return name, index, ok
}

// lookUp returns what the kernel knows of a neighbour; a nil MAC: nothing.
func lookUp(ip netip.Addr, link int) (mac net.HardwareAddr, nud uint16, err error) {
	family := syscall.AF_INET
	if ip.Is6() {
		family = syscall.AF_INET6
	}
	dump, err := syscall.NetlinkRIB(syscall.RTM_GETNEIGH, family)
	if err != nil {
		return nil, 0, err
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWNEIGH {
			continue
		}
		if at, index, mac, nud := readNeighbour(m.Data); at == ip && index == link {
			return mac, nud, nil
		}
	}
	return nil, 0, nil
}

// readNeighbour reads a struct ndmsg and its attributes.
func readNeighbour(b []byte) (ip netip.Addr, link int, mac net.HardwareAddr, nud uint16) {
	if len(b) < sizeofNdMsg {
		return netip.Addr{}, 0, nil, 0
	}
	link, nud = int(binary.NativeEndian.Uint32(b[4:])), binary.NativeEndian.Uint16(b[8:])
	for b = b[sizeofNdMsg:]; len(b) >= syscall.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < syscall.SizeofRtAttr || n > len(b) {
			break
		}
		value := b[syscall.SizeofRtAttr:n]
		switch binary.NativeEndian.Uint16(b[2:]) {
		case ndaDst:
			ip, _ = netip.AddrFromSlice(value)
		case ndaLLAddr:
			mac = net.HardwareAddr(value)
		}
		b = b[min(len(b), (n+syscall.RTA_ALIGNTO-1)&^(syscall.RTA_ALIGNTO-1)):]
	}
	return ip.Unmap(), link, mac, nud
}
