//go:build !portable

package serve

import (
	"cmp"
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"quayside.io/proxy/socket"
)

// How a client that is gone without a word is found out, in seconds and probes: as
// package net does by default.
const (
	keepAliveIdle  = 15
	keepAliveEvery = 15
	keepAliveCount = 9
)

// deferFor is for how many seconds the kernel keeps a connection whose client has sent
// nothing (TCP_DEFER_ACCEPT of tcp(7)), before it lets it be accepted as it is. Clients
// of HTTP and of TLS speak first, so nearly all are accepted with their request, and no
// goroutine waits for it.
const deferFor = 1

// listen opens a listening socket. Connections inherit what package net would set on each,
// in five system calls: keep-alive (tcp(7)) and that nothing is held back. For the same
// reason it is not one of Multipath TCP, which is not needed here. Clients
// without TLS are accepted without package net.
func listen(address string, plain bool) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: handDown}
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil || !plain {
		return l, err
	}
	return acceptorOf(l)
}

// writeLast writes bytes that the end of the connection follows at once, so that both
// go in one segment: on its own the end costs nearly what the response does.
func (c *client) writeLast(b []byte) (n int, err error) {
	if c.raw == nil {
		return c.Conn.Write(b)
	}
	failed := c.raw.Write(func(fd uintptr) bool {
		for n < len(b) {
			var k int
			k, err = unix.SendmsgN(int(fd), b[n:], nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			switch {
			case err == unix.EAGAIN:
				return false
			case err == unix.EINTR:
			case err != nil:
				return true
			}
			n += max(k, 0)
		}
		return true
	})
	if failed != nil {
		err = failed
	}
	return n, err
}

// shut ends what is written, which sends what writeLast has held back. That never waits but
// takes long enough, a whole round through the stack, for the runtime to believe that it
// did: it would give the processor to another thread, and be awake all the time to look.
func (c *client) shut() {
	if c.raw == nil {
		c.CloseWrite()
		return
	}
	c.raw.Control(shutWrite)
}

func shutWrite(fd uintptr) { socket.Shut(fd, unix.SHUT_WR) }

// acceptSilent ends what deferFor says: closing a listening socket resets connections that
// are kept back. Those that are now come within deferFor.
func acceptSilent(l net.Listener) error {
	socket, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 0)
	})
	return cmp.Or(failed, err)
}

func handDown(_, _ string, raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		for _, option := range [...]struct{ level, name, value int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepAliveIdle},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAliveEvery},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveCount},
			{unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, deferFor},
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		} {
			if err == nil {
				err = unix.SetsockoptInt(int(fd), option.level, option.name, option.value)
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}
