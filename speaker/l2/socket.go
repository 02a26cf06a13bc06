package l2

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Protocols by EtherType.
const (
	protoARP  = 0x0806
	protoIPv6 = 0x86dd
)

// receiveBuffer holds some 5,000 questions, a quarter of a second's worth of a
// busy LAN's.
const receiveBuffer = 4 << 20

// socket is a packet socket whose reads and writes allocate nothing: packet's
// own make an address for every frame, which the frame itself carries. One
// goroutine reads; each that writes has a writer of its own.
//
// Sockets are few for a reason: when a process is killed, the kernel waits some
// 13 ms for each packet socket that it closes, and until it comes to the one that
// members listen on, the speaker looks alive to the others.
type socket struct {
	conn   *packet.Conn
	raw    syscall.RawConn
	closed atomic.Bool

	buf    []byte
	n      int
	err    error
	readFn func(fd uintptr) bool // made once: a closure per read would escape
}

// writer sends frames by a socket, for one goroutine.
type writer struct {
	raw     syscall.RawConn
	pending []byte
	err     error
	writeFn func(fd uintptr) bool
}

// Permitted says why this process may not speak on any LAN; nil: it may.
func Permitted() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a packet socket: %w; it needs the capability NET_RAW, as root and the speaker of the chart have it", err)
	}
	_ = unix.Close(fd)
	return nil
}

func openSocket(link *net.Interface, proto int, filter []bpf.RawInstruction) (*socket, error) {
	conn, err := packet.Listen(link, packet.Raw, proto, &packet.Config{Filter: filter})
	if err != nil {
		return nil, fmt.Errorf("packet socket on %s: %w", link.Name, err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("packet socket on %s: %w", link.Name, err)
	}
	// Questions queue here while the machine is busy with something else. Only
	// NET_ADMIN may force more than net.core.rmem_max; asking for it doubles the
	// default at least. Less is no reason to fail.
	_ = raw.Control(func(fd uintptr) {
		if syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, receiveBuffer) != nil {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBuffer)
		}
	})
	s := &socket{conn: conn, raw: raw, buf: make([]byte, 2048)}
	s.readFn = func(fd uintptr) bool {
		s.n, s.err = syscall.Read(int(fd), s.buf)
		return !errors.Is(s.err, syscall.EAGAIN)
	}
	return s, nil
}

// read returns the next frame, which is valid until the next read; false once
// the socket is closed. A link that went down is reported once, one that is
// gone on every read: both are survived here until somebody closes the socket.
func (s *socket) read() ([]byte, bool) {
	for {
		err := s.raw.Read(s.readFn)
		switch {
		case s.closed.Load():
			return nil, false
		case err == nil && s.err == nil:
			return s.buf[:max(0, s.n)], true
		case !errors.Is(s.err, syscall.EINTR):
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// writer returns a new writer.
func (s *socket) writer() *writer {
	w := &writer{raw: s.raw}
	w.writeFn = func(fd uintptr) bool {
		_, w.err = syscall.Write(int(fd), w.pending)
		return true // a full queue drops the frame: the asker asks again
	}
	return w
}

func (w *writer) write(frame []byte) error {
	w.pending = frame
	if err := w.raw.Write(w.writeFn); err != nil {
		return err
	}
	return w.err
}

func (s *socket) close() {
	s.closed.Store(true)
	_ = s.conn.Close() // nothing was buffered that could be lost
}
