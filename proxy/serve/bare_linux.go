//go:build !portable

package serve

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/proxy/socket"
)

// bare is all that is kept of a connection of HTTP/1.1 without TLS that rests: its
// descriptor, which nobody else has, is the key. All else is made anew when it is woken, as
// for one that has just been accepted.
type bare struct {
	peer   netip.AddrPort
	until  time.Time // when its rest ends at the latest; zero: never
	served int64
	h2c    bool // see plainClient
}

// end closes the connection.
func (*bare) end(fd int) { socket.Close(uintptr(fd)) }

// layBareLocked has c rest as no more than its descriptor. It reports false where c has more
// to remember.
func (s *Server) layBareLocked(c *client) bool {
	a, ok := c.socket.(*accepted)
	if !ok || c.Conn != c.socket || c.secret || c.again != nil || c.linger || c.in.ended || c.last.Load() || len(c.ahead) > 0 {
		return false
	}
	fd, err := a.detach(s.rest.add)
	if err != nil {
		return false
	}
	_, h2c := c.outer.(*plainClient)
	s.bares[fd] = &bare{peer: a.peer, until: c.until, served: c.served, h2c: h2c}
	delete(s.clients, c)
	return true
}

// dressLocked ends a rest: what was bare is a client again.
func (s *Server) dressLocked(fd int, b *bare) *client {
	delete(s.bares, fd)
	a := &accepted{fd: fd, peer: b.peer}
	c := &client{Conn: a, socket: a, raw: (*acceptedRaw)(a), server: s, served: b.served}
	c.look = c.poll
	c.asked.Store(true)
	if b.h2c {
		c.outer = &plainClient{client: c, first: firstLine{end: [8]byte([]byte("HTTP/1.1")), over: true}}
	} else {
		c.outer = &directClient{client: c}
	}
	s.clients[c] = struct{}{}
	return c
}

// detach gives the descriptor away, if use takes it: the connection is closed for those who
// know it still. The poller cannot be made to forget a descriptor but by closing it, so that
// where it knows this one, a copy is given away.
func (a *accepted) detach(use func(fd int) error) (fd int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.turning {
		return -1, net.ErrClosed
	}
	fd = a.fd
	if a.file != nil {
		failed := a.raw.Control(func(known uintptr) { fd, err = unix.FcntlInt(known, unix.F_DUPFD_CLOEXEC, 0) })
		if err = cmp.Or(failed, os.NewSyscallError("fcntl", err)); err != nil {
			return -1, err
		}
	}
	if err := use(fd); err != nil {
		if a.file != nil {
			socket.Close(uintptr(fd))
		}
		return -1, err
	}
	if a.closed = true; a.file != nil {
		a.file.Close()
	}
	return fd, nil
}
