// Package loop: prototype.
package loop

import (
	"context"
	"io"
	"iter"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Loop is one epoll and the tasks that wait for it.
type Loop struct {
	epfd    int
	current *task
	free    []*task
	ready   []*task
	conns   map[*Conn]struct{}
	Index   int
}

type task struct {
	loop  *Loop
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	job   func()
}

// Conn is a TCP connection whose waits are those of a task.
type Conn struct {
	fd       int
	loop     *Loop
	readable bool
	writable bool
	hup      bool
	shut     bool
	in       bool
	reader   *task
	writer   *task
	accept   func() // of a listening socket
	peer     netip.AddrPort
	remote   net.Addr
}

const et = 1 << 31

// New makes a loop.
func New(index int) (*Loop, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return &Loop{epfd: fd, Index: index}, nil
}

func (l *Loop) add(c *Conn) error {
	ev := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | et&0xffffffff}
	*(**Conn)(unsafe.Pointer(&ev.Fd)) = c
	if l.conns == nil {
		l.conns = map[*Conn]struct{}{}
	}
	l.conns[c] = struct{}{}
	c.in = true
	return syscall.EpollCtl(l.epfd, syscall.EPOLL_CTL_ADD, c.fd, &ev)
}

// Listen accepts on a socket and has serve run as a task for each connection.
func (l *Loop) Listen(fd int, serve func(*Conn)) error {
	c := &Conn{fd: fd, loop: l}
	c.accept = func() {
		for {
			nfd, sa, err := accept4(fd)
			if err != nil {
				return
			}
			n := &Conn{fd: nfd, loop: l, readable: true, writable: true, peer: sa}
			l.Go(func() { serve(n) })
		}
	}
	return l.add(c)
}

func accept4(fd int) (int, netip.AddrPort, error) {
	nfd, sa, err := syscall.Accept4(fd, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	if err != nil {
		return -1, netip.AddrPort{}, err
	}
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return nfd, netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *syscall.SockaddrInet6:
		return nfd, netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)), nil
	}
	return nfd, netip.AddrPort{}, nil
}

// Dial connects.
func (l *Loop) Dial(to netip.AddrPort) (*Conn, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()}); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	syscall.SetNonblock(fd, true)
	syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	c := &Conn{fd: fd, loop: l, writable: true, peer: to}
	return c, l.add(c)
}

// Go runs a task until it waits.
func (l *Loop) Go(job func()) {
	var t *task
	if n := len(l.free); n > 0 {
		t = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		t = &task{loop: l}
		t.next, _ = iter.Pull(func(yield func(struct{}) bool) {
			t.yield = yield
			for {
				t.job()
				t.job = nil
				if !yield(struct{}{}) {
					return
				}
			}
		})
	}
	t.job = job
	l.resume(t)
}

func (l *Loop) resume(t *task) {
	before := l.current
	l.current = t
	t.next()
	l.current = before
	if t.job == nil {
		l.free = append(l.free, t)
	}
}

// Run handles events until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	f := os.NewFile(uintptr(l.epfd), "epoll")
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	events := make([]syscall.EpollEvent, 256)
	defer context.AfterFunc(ctx, func() { f.Close() })()
	return raw.Read(func(uintptr) bool {
		for {
			n := epollWait(l.epfd, events)
			if n <= 0 {
				return ctx.Err() != nil
			}
			for i := range events[:n] {
				ev := &events[i]
				c := *(**Conn)(unsafe.Pointer(&ev.Fd))
				c.handle(ev.Events)
			}
		}
	})
}

func epollWait(epfd int, events []syscall.EpollEvent) int {
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return -1
		}
		return int(n)
	}
}

func (c *Conn) handle(ev uint32) {
	if c.shut {
		return
	}
	if c.accept != nil {
		c.accept()
		return
	}
	if ev&(syscall.EPOLLRDHUP|syscall.EPOLLHUP|syscall.EPOLLERR) != 0 {
		c.hup = true
	}
	if ev&(syscall.EPOLLIN|syscall.EPOLLRDHUP|syscall.EPOLLHUP|syscall.EPOLLERR) != 0 {
		c.readable = true
		if t := c.reader; t != nil {
			c.reader = nil
			c.loop.resume(t)
		}
	}
	if ev&(syscall.EPOLLOUT|syscall.EPOLLHUP|syscall.EPOLLERR) != 0 {
		c.writable = true
		if t := c.writer; t != nil {
			c.writer = nil
			c.loop.resume(t)
		}
	}
}

// Current is the loop whose task this is.
func (c *Conn) Loop() *Loop { return c.loop }

// Stale reports whether something has come that nobody waits for.
func (c *Conn) Stale() bool { return c.readable || c.hup }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		if !c.readable {
			c.reader = c.loop.current
			c.loop.current.yield(struct{}{})
		}
		n, _, e := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch {
		case e == syscall.EINTR:
			continue
		case e == syscall.EAGAIN:
			c.readable = false
			if !c.in {
				if err := c.loop.add(c); err != nil {
					return 0, err
				}
			}
			continue
		case e != 0:
			return 0, e
		case n == 0:
			return 0, io.EOF
		}
		if int(n) < len(b) && !c.hup {
			c.readable = !c.in // not waited for yet
		}
		return int(n), nil
	}
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&b[done])), uintptr(len(b)-done), syscall.MSG_NOSIGNAL, 0, 0)
		switch {
		case e == syscall.EINTR:
		case e == syscall.EAGAIN:
			c.writer = c.loop.current
			c.loop.current.yield(struct{}{})
		case e != 0:
			return done, e
		default:
			done += int(n)
		}
	}
	return done, nil
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	if c.shut {
		return net.ErrClosed
	}
	c.shut = true
	if c.in {
		delete(c.loop.conns, c)
	}
	return syscall.Close(c.fd)
}

// CloseWrite ends one direction.
func (c *Conn) CloseWrite() error { return syscall.Shutdown(c.fd, syscall.SHUT_WR) }

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr {
	if c.remote == nil {
		c.remote = net.TCPAddrFromAddrPort(c.peer)
	}
	return c.remote
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }
