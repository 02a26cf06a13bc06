package upstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"quayside.io/proxy/socket"
	"quayside.io/proxy/streams"
)

// patience is how long one wait on an upstream lasts before we look whether the
// client is still there. Deadlines are set that far ahead and left in place
// until half of it has passed, because setting one costs as much as the
// bookkeeping of the rest of the request.
const patience = 2 * time.Second

// quietFor is how long after a response that left nothing behind a connection is taken
// to have nothing to read: looking costs a system call for each request of a busy pod, and
// a core that is busy goes once round its clients in a few milliseconds. Pods that time out
// idle connections, and perhaps say so, wait for seconds. See leftover.go.
const quietFor = 10 * time.Millisecond

// conn is one connection to a pod, owned by one goroutine at a time. The bytes
// go past it: buffers belong to the transaction, so that an idle connection
// holds none.
type conn struct {
	*net.TCPConn
	secure *tls.Conn // over TCPConn; nil without TLS
	config *tls.Config
	//lint:ignore U1000 off Linux it is empty
	plain     plain         // what asking without TLS needs
	http2     *streams.Conn // over all that, once introduce has been called
	endpoint  *endpoint
	placed    atomic.Bool // it holds one of the engine's places
	born      time.Time
	idleSince time.Time
	used      int           // requests sent so far
	kept      bool          // it has been idle, and its pod may have closed it meanwhile
	deadline  time.Time     // the read deadline in force
	patient   time.Duration // how long the upstream may take nothing of what ask sends as a stream
	wrote     bool          // the upstream may have seen part of the request
	drained   bool          // the last read found less than there was room for
	quiet     bool          // it was drained just now, see quietFor
	confirmed uint64        // bytes that its kernel had, before a request that is streamed
}

var (
	// errStale says that a reused connection turned out closed, or full of bytes
	// that were not requested, before the upstream had any of the request.
	errStale = errors.New("the idle connection was closed by the upstream")
	// errPartial says that the socket took part of the request only.
	errPartial = errors.New("the request was sent in part")
	// errUnsent says that the upstream did not take all of the request in time. It is a
	// timeout, but none of waiting for the answer.
	errUnsent = fmt.Errorf("the upstream did not take the request: %w", os.ErrDeadlineExceeded)
)

func newConn(c *net.TCPConn, e *endpoint, now time.Time) (*conn, error) {
	n := &conn{TCPConn: c, endpoint: e, born: now}
	return n, n.prepare()
}

// Close ends the connection, and its place is free for another. It may be called often, by
// any goroutine. crypto/tls closes what is below it, so that alone frees no place.
func (c *conn) Close() error {
	err := c.TCPConn.Close()
	if c.placed.Swap(false) {
		c.endpoint.backend.engine.places.free()
	}
	return err
}

// endSilent has the connection end when the pod's machine has confirmed nothing for so
// long, or had no room. TCP alone repeats for a quarter of an hour.
func (c *conn) endSilent(after time.Duration) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = socket.EndSilent(raw, after) // it does without
	}
}

// ask sends out and waits for the first bytes of the answer, which it reads
// into the buffer that in returns; the buffer is asked for only when there is
// something to put into it, where the system can tell. Without in it does not wait.
func (c *conn) ask(out []byte, in func() []byte) (int, error) {
	if c.secure != nil {
		return c.askSecure(out, in)
	}
	c.wrote = false
	c.used++
	if in == nil && c.kept {
		c.confirmed = c.acknowledged()
	}
	return c.askPlain(out, in)
}

// resume continues to wait for the first bytes after ask or resume timed out,
// or after the rest of the request has been written.
func (c *conn) resume(in func() []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Read(in())
	}
	return c.resumePlain(in)
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
