package upstream

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long one wait on an upstream lasts before we look whether the
// client is still there. Deadlines are set that far ahead and left in place
// until half of it has passed, because setting one costs as much as the
// bookkeeping of the rest of the request.
const patience = 2 * time.Second

// conn is one connection to a pod, owned by one goroutine at a time. The bytes
// go past it: buffers belong to the transaction, so that an idle connection
// holds none.
type conn struct {
	*net.TCPConn
	secure    *tls.Conn // over TCPConn; nil without TLS
	config    *tls.Config
	raw       syscall.RawConn
	step      func(fd uintptr) bool // the method value, made once
	endpoint  *endpoint
	born      time.Time
	idleSince time.Time
	used      int       // requests sent so far
	deadline  time.Time // the read deadline in force

	// The arguments and results of step.
	phase phase
	out   []byte        // what is sent
	in    func() []byte // where to receive, nil if only sending is asked for
	got   int           // bytes received, or sent if err is errPartial
	wrote bool          // the upstream may have seen part of the request
	err   error
}

type phase uint8

const (
	checking phase = iota // is a reused connection still good?
	sending
	receiving
	finished
)

var (
	// errStale says that a reused connection turned out dead, or full of bytes
	// nobody asked for, before anything was sent.
	errStale = errors.New("the idle connection was closed by the upstream")
	// errPartial says that the socket took part of the request only.
	errPartial = errors.New("the request was sent in part")
)

func newConn(c *net.TCPConn, e *endpoint, now time.Time) (*conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	n := &conn{TCPConn: c, raw: raw, endpoint: e, born: now}
	n.step = n.do
	return n, nil
}

// ask sends out and waits for the first bytes of the answer, which it reads
// into the buffer that in returns; the buffer is asked for only when there is
// something to put into it. Without in it does not wait. All of it is one call
// into the runtime's poller: check, send, wait, receive. Doing it with Write and
// Read costs another system call, one that finds nothing.
//
// The order inside matters. The poller forgets earlier readiness when the call
// begins; whatever arrives after the send makes it ready again.
func (c *conn) ask(out []byte, in func() []byte) (int, error) {
	if c.secure != nil {
		return c.askSecure(out, in)
	}
	c.phase, c.out, c.in, c.got, c.err, c.wrote = sending, out, in, 0, nil, false
	if c.used > 0 {
		c.phase = checking
	}
	c.used++
	return c.poll()
}

// resume continues to wait for the first bytes after ask or resume timed out,
// or after the rest of the request has been written.
func (c *conn) resume(in func() []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Read(in())
	}
	c.phase, c.in, c.got, c.err = receiving, in, 0, nil
	return c.poll()
}

func (c *conn) poll() (int, error) {
	err := c.raw.Read(c.step)
	c.out, c.in = nil, nil
	if c.err != nil {
		return c.got, c.err
	}
	return c.got, err
}

// do is called by the poller whenever the socket may be ready; false means wait.
func (c *conn) do(fd uintptr) bool {
	if c.phase == checking {
		if c.stale(int(fd)) {
			c.err, c.phase = errStale, finished
			return true
		}
		c.phase = sending
	}
	if c.phase == sending {
		n, err := retryEINTR(syscall.Write, int(fd), c.out)
		switch {
		case err == syscall.EAGAIN:
			n = 0
		case err != nil:
			c.err, c.phase = err, finished
			return true
		}
		c.wrote = n > 0
		if n < len(c.out) {
			c.got, c.err, c.phase = n, errPartial, finished
			return true
		}
		if c.in == nil {
			c.phase = finished
			return true
		}
		c.phase = receiving
		if c.used > 1 {
			return false // the check has just seen that there is nothing to read
		}
	}
	n, err := retryEINTR(syscall.Read, int(fd), c.in())
	switch {
	case err == syscall.EAGAIN:
		return false
	case err == nil && n == 0:
		err = io.EOF
	}
	c.got, c.err, c.phase = n, err, finished
	return true
}

// stale looks, without waiting, whether anything has come on a connection from
// which nothing is due: its end, or bytes that would be taken for the answer
// to the next request.
func (c *conn) stale(fd int) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(fd, one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return err != syscall.EAGAIN
		}
	}
}

// unread reports whether part of what was sent has not reached the upstream's
// kernel. If that has answered all the same, it has not read the request, and
// may never do so.
func (c *conn) unread() bool {
	waiting := 0
	err := c.raw.Control(func(fd uintptr) { waiting, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return err != nil || waiting > 0
}

// expectBy sets the read deadline d from now, or patience if that is sooner.
// It leaves the deadline alone while it is near enough.
func (c *conn) expectBy(now time.Time, d time.Duration) error {
	if d >= patience {
		if left := c.deadline.Sub(now); left >= patience/2 && left <= patience {
			return nil
		}
		d = patience
	}
	c.deadline = now.Add(d)
	return c.SetReadDeadline(c.deadline)
}

func retryEINTR(f func(int, []byte) (int, error), fd int, b []byte) (int, error) {
	for {
		n, err := f(fd, b)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
