package members

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// packets reads and writes the packets of a UDP socket by raw system calls, of which Go's
// scheduler is not told. That is safe since they never block: a goroutine that would wait
// is parked by the poller. For ordinary system calls the runtime wakes its monitor thread
// (sysmon), which polls some twenty times per packet; that was a third of the CPU time of
// an idle speaker.
type packets struct {
	raw  syscall.RawConn
	is6  bool // the socket is of IPv6, which takes IPv4 as mapped addresses
	in   frame
	read func(fd uintptr) bool // made once: a closure for each packet would escape

	mu    sync.Mutex // guards the fields below
	out   frame
	write func(fd uintptr) bool
}

// frame holds the arguments of one sendto or recvfrom call.
type frame struct {
	buf    []byte
	peer   unix.RawSockaddrInet6 // the larger of the two
	length uint32                // of peer
	n      int
	errno  syscall.Errno
}

func newPackets(conn *net.UDPConn) (*packets, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &packets{raw: raw}
	var domain int
	if cerr := raw.Control(func(fd uintptr) { domain, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN) }); cerr != nil || err != nil {
		return nil, fmt.Errorf("family of a socket: %w", err)
	}
	p.is6 = domain == unix.AF_INET6
	p.read = func(fd uintptr) bool {
		p.in.length = unix.SizeofSockaddrInet6
		return p.in.call(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&p.in.length)))
	}
	p.write = func(fd uintptr) bool { return p.out.call(unix.SYS_SENDTO, fd, uintptr(p.out.length)) }
	return p, nil
}

// call makes one system call and reports whether it completed without having to wait.
func (f *frame) call(number, fd, length uintptr) bool {
	for {
		n, _, errno := unix.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(f.buf))), uintptr(len(f.buf)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&f.peer)), length)
		if errno != unix.EINTR {
			f.n, f.errno = int(n), errno
			return errno != unix.EAGAIN
		}
	}
}

// receive waits for a packet and writes it into buf.
func (p *packets) receive(buf []byte) (n int, from netip.AddrPort, err error) {
	p.in.buf = buf
	if err := p.raw.Read(p.read); err != nil {
		return 0, netip.AddrPort{}, err
	}
	if p.in.errno != 0 {
		return 0, netip.AddrPort{}, p.in.errno
	}
	return p.in.n, p.in.from(), nil
}

// send sends a packet. One for which the socket buffer has no room is lost.
func (p *packets) send(b []byte, to netip.AddrPort) error {
	if to.Addr().Is6() && !to.Addr().Is4In6() && !p.is6 {
		return fmt.Errorf("%s cannot be reached from an address of IPv4", to)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.buf = b
	p.out.address(to, p.is6)
	err := p.raw.Write(p.write)
	p.out.buf = nil
	if err != nil {
		return err
	}
	if p.out.errno != 0 {
		return p.out.errno
	}
	return nil
}

// from returns the source of a received packet.
func (f *frame) from() netip.AddrPort {
	if f.peer.Family == unix.AF_INET {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&f.peer))
		return netip.AddrPortFrom(netip.AddrFrom4(four.Addr), portOf(four.Port))
	}
	a := netip.AddrFrom16(f.peer.Addr).Unmap()
	return netip.AddrPortFrom(a, portOf(f.peer.Port))
}

// address sets the destination of a packet.
func (f *frame) address(to netip.AddrPort, is6 bool) {
	if is6 {
		f.peer = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: portOf(to.Port()), Addr: to.Addr().As16()}
		f.length = unix.SizeofSockaddrInet6
		return
	}
	four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&f.peer))
	*four = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: portOf(to.Port()), Addr: to.Addr().Unmap().As4()}
	f.length = unix.SizeofSockaddrInet4
}

// portOf converts a port from network to host byte order, or back.
func portOf(p uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&p))
	return uint16(b[0])<<8 | uint16(b[1])
}
