//go:build !portable

package socket

import (
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

// Shut ends what is sent: the peer reads to the end of it. What it returns is of no use,
// since a connection that is broken has ended, too.
func Shut(fd uintptr) {
	sent()
	syscall.RawSyscall(unix.SYS_SHUTDOWN, fd, unix.SHUT_WR, 0)
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

// Inquiry receives and asks what that leaves. It has memory that is used again.
type Inquiry struct {
	header  unix.Msghdr
	vector  unix.Iovec
	control [4]uint64 // aligned
}

// Receive reads what has come into b, which is not empty. left is how many bytes that
// leaves, counting the end as one, where the socket has the option TCP_INQ; below 0: the
// kernel does not say.
func (q *Inquiry) Receive(fd uintptr, b []byte) (n, left int, err error) {
	q.vector.Base = unsafe.SliceData(b)
	q.vector.SetLen(len(b))
	q.header.Iov, q.header.Iovlen = &q.vector, 1
	q.header.Control = (*byte)(unsafe.Pointer(&q.control))
	for {
		q.header.SetControllen(int(unsafe.Sizeof(q.control)))
		r, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&q.header)), unix.MSG_DONTWAIT)
		switch errno {
		case 0:
			received(fd)
			return int(r), q.left(), nil
		case syscall.EINTR:
		default:
			return 0, -1, errno
		}
	}
}

// left is what TCP_INQ says.
func (q *Inquiry) left() int {
	said := (*unix.Cmsghdr)(unsafe.Pointer(&q.control))
	if q.header.Controllen == 0 || said.Level != unix.IPPROTO_TCP || said.Type != unix.TCP_CM_INQ {
		return -1
	}
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&q.control), unix.CmsgLen(0))))
}
