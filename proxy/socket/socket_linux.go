//go:build !portable

package socket

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Send writes what the socket takes at once; flags are those of send(2). It raises no
// SIGPIPE.
func Send(fd uintptr, b []byte, flags int) (int, error) {
	sent()
	return transfer(unix.SYS_SENDTO, fd, b, flags|unix.MSG_NOSIGNAL)
}

// Shut is shutdown(2). With SHUT_WR it ends what is sent: the peer reads to the end of it.
// What it returns is of no use, since a connection that is broken has ended, too.
func Shut(fd, how uintptr) {
	sent()
	syscall.RawSyscall(unix.SYS_SHUTDOWN, fd, how, 0)
}

// Close closes a connection that does not linger.
func Close(fd uintptr) {
	sent()
	syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
}

// Accept takes a connection to a listening socket that does not wait. The connection does
// not either.
func Accept(fd uintptr) (conn int, from netip.AddrPort, err error) {
	var name unix.RawSockaddrAny
	for {
		size := uint32(unix.SizeofSockaddrAny)
		r, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, fd, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&size)),
			unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return int(r), addressOf(&name), nil
		case syscall.EINTR, syscall.ECONNABORTED: // who connected is gone already
		default:
			return -1, netip.AddrPort{}, errno
		}
	}
}

// Name is the address that a socket has on this side, or the zero value.
func Name(fd uintptr) netip.AddrPort {
	var name unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	if _, _, errno := syscall.RawSyscall(unix.SYS_GETSOCKNAME, fd, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&size))); errno != 0 {
		return netip.AddrPort{}
	}
	return addressOf(&name)
}

// addressOf is an address of IP, without its zone, or the zero value.
func addressOf(name *unix.RawSockaddrAny) netip.AddrPort {
	switch name.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), hostOrder(&in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr).Unmap(), hostOrder(&in.Port))
	}
	return netip.AddrPort{}
}

func hostOrder(port *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(port))[:])
}

// Come reports whether the next byte has come, or the end. It leaves it there.
func Come(fd uintptr) bool {
	var one [1]byte
	_, err := transfer(unix.SYS_RECVFROM, fd, one[:], unix.MSG_PEEK)
	return err != syscall.EAGAIN
}

// Receive reads what has come.
func Receive(fd uintptr, b []byte) (int, error) {
	n, err := transfer(unix.SYS_RECVFROM, fd, b, 0)
	received(fd)
	return n, err
}

// transfer is sendto(2) or recvfrom(2) without an address.
func transfer(call, fd uintptr, b []byte, flags int) (int, error) {
	first := unsafe.Pointer(unsafe.SliceData(b))
	for {
		n, _, errno := syscall.RawSyscall6(call, fd, uintptr(first), uintptr(len(b)), uintptr(flags|unix.MSG_DONTWAIT), 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
