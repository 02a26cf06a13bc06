//go:build !portable

package serve

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/proxy/socket"
)

// accepted is a connection that the runtime's poller knows of only once somebody has to
// wait for it. Many never are: their first request has come when they are accepted (see
// deferFor), and its response is the last.
//
// Without the poller nothing keeps the descriptor open but mu, or that somebody is in
// turn: who closes meanwhile only ends the connection, and turn closes it.
type accepted struct {
	peer netip.AddrPort

	mu              sync.Mutex
	fd              int
	file            *os.File // has the descriptor and the poller; nil: not yet
	raw             syscall.RawConn
	turning, closed bool
	readBy, writeBy time.Time // the deadlines, until there is a file
}

// turn calls f, which does not wait, with the descriptor, unless somebody has had to wait
// for the connection before. It reports what f does.
func (a *accepted) turn(f func(fd uintptr) bool) (done bool, err error) {
	a.mu.Lock()
	fresh, closed := a.file == nil, a.closed
	a.turning = fresh && !closed
	a.mu.Unlock()
	switch {
	case closed:
		return false, net.ErrClosed
	case !fresh:
		return false, nil
	}
	done = f(uintptr(a.fd))
	a.mu.Lock()
	a.turning, closed = false, a.closed
	a.mu.Unlock()
	if closed {
		a.free()
		err = net.ErrClosed
	}
	return done, err
}

// polled returns the connection as the poller knows it.
func (a *accepted) polled() (*os.File, syscall.RawConn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, net.ErrClosed
	}
	if a.file == nil {
		a.file = os.NewFile(uintptr(a.fd), "")
		var err error
		if a.raw, err = a.file.SyscallConn(); err != nil {
			return nil, nil, err
		}
		// It fails where the poller has refused the socket.
		if err := errors.Join(a.file.SetReadDeadline(a.readBy), a.file.SetWriteDeadline(a.writeBy)); err != nil {
			return nil, nil, err
		}
	}
	return a.file, a.raw, nil
}

// Close implements net.Conn.
func (a *accepted) Close() error {
	a.mu.Lock()
	again, turning := a.closed, a.turning
	if a.closed = true; turning && !again {
		socket.Shut(uintptr(a.fd), unix.SHUT_RDWR)
	}
	a.mu.Unlock()
	switch {
	case again:
		return opError("close", a.RemoteAddr(), net.ErrClosed)
	case turning:
		return nil
	}
	return a.free()
}

// free closes the descriptor. It is called once, when closed is set and nobody is in turn.
func (a *accepted) free() error {
	if a.file != nil {
		return a.file.Close()
	}
	socket.Close(uintptr(a.fd))
	return nil
}

// Read implements net.Conn.
func (a *accepted) Read(b []byte) (n int, err error) {
	file, _, err := a.polled()
	if err == nil {
		n, err = file.Read(b)
	}
	return n, opError("read", a, err)
}

// Write implements net.Conn.
func (a *accepted) Write(b []byte) (n int, err error) {
	file, _, err := a.polled()
	if err == nil {
		n, err = file.Write(b)
	}
	return n, opError("write", a, err)
}

// SetDeadline implements net.Conn.
func (a *accepted) SetDeadline(t time.Time) error {
	return errors.Join(a.SetReadDeadline(t), a.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (a *accepted) SetReadDeadline(t time.Time) error {
	return a.setDeadline(&a.readBy, t, (*os.File).SetReadDeadline)
}

// SetWriteDeadline implements net.Conn.
func (a *accepted) SetWriteDeadline(t time.Time) error {
	return a.setDeadline(&a.writeBy, t, (*os.File).SetWriteDeadline)
}

func (a *accepted) setDeadline(by *time.Time, t time.Time, set func(*os.File, time.Time) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return opError("set", a, net.ErrClosed)
	case a.file == nil:
		*by = t
		return nil
	}
	return opError("set", a, set(a.file, t))
}

// SyscallConn implements syscall.Conn.
func (a *accepted) SyscallConn() (syscall.RawConn, error) { return (*acceptedRaw)(a), nil }

// acceptedRaw is an accepted as a syscall.RawConn.
type acceptedRaw accepted

// Control implements syscall.RawConn. What f does neither waits nor uses the connection
// in another way.
func (r *acceptedRaw) Control(f func(fd uintptr)) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return net.ErrClosed
	}
	if raw := r.raw; raw != nil {
		r.mu.Unlock()
		return r.ended(raw.Control(f))
	}
	defer r.mu.Unlock()
	f(uintptr(r.fd))
	return nil
}

// Read implements syscall.RawConn.
func (r *acceptedRaw) Read(f func(fd uintptr) bool) error {
	_, raw, err := (*accepted)(r).polled()
	if err != nil {
		return err
	}
	return r.ended(raw.Read(f))
}

// Write implements syscall.RawConn.
func (r *acceptedRaw) Write(f func(fd uintptr) bool) error {
	_, raw, err := (*accepted)(r).polled()
	if err != nil {
		return err
	}
	return r.ended(raw.Write(f))
}

// ended returns err, as package net tells it where it comes of closing: that of package os
// cannot be told by others.
func (r *acceptedRaw) ended(err error) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return net.ErrClosed
	}
	return err
}

// CloseRead ends what is read.
func (a *accepted) CloseRead() error { return a.shut(unix.SHUT_RD) }

// CloseWrite ends what is written.
func (a *accepted) CloseWrite() error { return a.shut(unix.SHUT_WR) }

func (a *accepted) shut(how uintptr) error {
	return opError("close", a, (*acceptedRaw)(a).Control(func(fd uintptr) { socket.Shut(fd, how) }))
}

// SetLinger is that of net.TCPConn.
func (a *accepted) SetLinger(seconds int) (err error) {
	failed := (*acceptedRaw)(a).Control(func(fd uintptr) {
		err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: int32(seconds)})
	})
	return opError("set", a, errors.Join(failed, err))
}

// RemoteAddr implements net.Conn.
func (a *accepted) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(a.peer) }

// LocalAddr implements net.Conn.
func (a *accepted) LocalAddr() net.Addr {
	var at netip.AddrPort
	(*acceptedRaw)(a).Control(func(fd uintptr) { at = socket.Name(fd) })
	return net.TCPAddrFromAddrPort(at)
}

// opError is err as package net tells it; by is who it is about.
func opError(op string, by any, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, os.ErrClosed) {
		err = net.ErrClosed
	}
	addr, _ := by.(net.Addr)
	if c, ok := by.(*accepted); ok {
		addr = c.RemoteAddr()
	}
	return &net.OpError{Op: op, Net: "tcp", Addr: addr, Err: err}
}

var (
	_ net.Conn     = (*accepted)(nil)
	_ syscall.Conn = (*accepted)(nil)
)
