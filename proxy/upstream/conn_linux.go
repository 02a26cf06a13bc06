//go:build !portable

package upstream

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"quayside.io/proxy/socket"
)

// plain is how a connection without TLS is asked: all of it is one call into the
// runtime's poller, which checks, sends, waits and receives. Doing it with Write and
// Read costs another system call, one that finds nothing. The system calls cannot wait, see
// package socket.
//
// The order inside matters. The poller forgets earlier readiness when the call
// begins; whatever arrives after the send makes it ready again. A quiet connection is
// not checked: if the pod has closed it after all, what is sent there is answered with a
// reset, which wakes the call, and unheard sees that the pod has had none of it.
type plain struct {
	raw  syscall.RawConn
	step func(fd uintptr) bool // the method value, made once

	// The arguments and results of step.
	phase phase
	out   []byte        // what is sent
	in    func() []byte // where to receive, nil if only sending is asked for
	got   int           // bytes received, or sent if err is errPartial
	err   error
}

type phase uint8

const (
	checking phase = iota // is a kept connection still good?
	sending
	receiving
	finished
)

func (c *conn) prepare() (err error) {
	c.plain.raw, err = c.SyscallConn()
	c.plain.step = c.do
	return err
}

func (c *conn) askPlain(out []byte, in func() []byte) (int, error) {
	p := &c.plain
	p.phase, p.out, p.in, p.got, p.err = sending, out, in, 0, nil
	if c.kept && (in == nil || !c.quiet) {
		p.phase = checking
	}
	return p.poll()
}

func (c *conn) resumePlain(in func() []byte) (int, error) {
	p := &c.plain
	p.phase, p.in, p.got, p.err = receiving, in, 0, nil
	return p.poll()
}

func (p *plain) poll() (int, error) {
	err := p.raw.Read(p.step)
	p.out, p.in = nil, nil
	if p.err != nil {
		return p.got, p.err
	}
	return p.got, err
}

// do is called by the poller whenever the socket may be ready; false means wait.
func (c *conn) do(fd uintptr) bool {
	p := &c.plain
	if p.phase == checking {
		if socket.Come(fd) {
			p.err, p.phase = errStale, finished
			return true
		}
		p.phase = sending
	}
	if p.phase == sending {
		n, err := socket.Send(fd, p.out, 0)
		switch {
		case err == syscall.EAGAIN:
			n = 0
		case c.kept && (err == syscall.EPIPE || err == syscall.ECONNRESET):
			p.err, p.phase = errStale, finished // none of it was sent
			return true
		case err != nil:
			p.err, p.phase = err, finished
			return true
		}
		c.wrote = n > 0
		if n < len(p.out) {
			p.got, p.err, p.phase = n, errPartial, finished
			return true
		}
		if p.in == nil {
			p.phase = finished
			return true
		}
		p.phase = receiving
		if c.kept {
			return false // there was nothing to read before: of what comes now the poller tells
		}
	}
	room := p.in()
	n, err := socket.Receive(fd, room)
	c.drained = n < len(room)
	switch {
	case err == syscall.EAGAIN:
		return false
	case err == nil && n == 0:
		err = io.EOF
	}
	p.got, p.err, p.phase = n, err, finished
	return true
}

// stale looks, without waiting, whether anything has come on a connection from
// which nothing is due: its end, or bytes that would be taken for the answer
// to the next request.
func (c *conn) stale() bool {
	stale := true
	err := c.plain.raw.Control(func(fd uintptr) { stale = socket.Come(fd) })
	return err != nil || stale
}

// unread reports whether part of what was sent has not reached the upstream's
// kernel. If that has answered all the same, it has not read the request, and
// may never do so.
func (c *conn) unread() bool {
	waiting, err := c.unacknowledged()
	return err != nil || waiting > 0
}

// unheard is asked where the upstream has ended the connection in order. It reports
// whether not one of the size bytes of a request, or of one that is streamed, had come
// to its kernel by then: the segment that says so confirms all that had. What comes
// later no server takes for a request, for it could not answer; this one has never been
// made (RFC 9110 section 9.2.2). Of a connection that was reset nobody can tell.
func (c *conn) unheard(size int, streamed bool) bool {
	if streamed {
		n := c.acknowledged()
		return n > 0 && n == c.confirmed
	}
	if c.secure != nil {
		return false // what its records need is not known
	}
	waiting, err := c.unacknowledged()
	return err == nil && waiting >= size
}

// unacknowledged is how many bytes the upstream's kernel has not confirmed.
func (c *conn) unacknowledged() (n int, err error) {
	if e := c.plain.raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); e != nil {
		return 0, e
	}
	return n, err
}

// acknowledged is how many it has, ever; 0: unknown.
func (c *conn) acknowledged() (n uint64) {
	c.plain.raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_acked
		}
	})
	return n
}

// lost is how often in a row the kernel has sent something again, or asked for a sign of
// life, and the upstream's kernel has not answered. One that has no room answers.
func (c *conn) lost() (n int) {
	c.plain.raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Last_ack_recv >= leastSilence {
			n = max(int(info.Retransmits), int(info.Probes))
		}
	})
	return n
}

// leastSilence is how long nothing has been confirmed at least, in ms, whatever the network
// has repeated how quickly.
const leastSilence = 1000
