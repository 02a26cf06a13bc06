//go:build !portable

package serve

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"quayside.io/proxy/socket"
)

// writeBufferSize is what a response is put together in; fasthttp's own.
const writeBufferSize = 4 << 10

// readBufferSize is what requests are read into. One with a longer head is not simple.
const readBufferSize = 16 << 10

// direct serves the simple requests of one connection (see readSimple) inside one call into
// the runtime's poller, which reads, has the request answered, writes, and then waits
// for the next. A read that begins anew makes the poller forget what it has heard before,
// so it must look at the socket first, and nearly always finds nothing; here the poller
// forgets nothing from one request to the next: a read that leaves room has taken all that
// had come, and of what comes later the poller tells. None of the system calls can wait, see
// package socket.
//
// The end of what the client sends is something that the poller has told already where it
// had come together with a request, and that the read of it does not show. Such a client
// has its responses; that the connection is over is found when it is laid to rest (see
// rest.go). To ask with each read costs a fiftieth of a request.
//
// Whatever waits for the client in another way is fasthttp's: the first request that is
// not simple hands the connection over, with what has been read of it.
type direct struct {
	server *Server
	client *client
	ready  func(fd uintptr) bool // the method value, made once
	ctx    fasthttp.RequestCtx   // of which the response alone is used
	in     []byte                // what the last read has brought
	writer *bufio.Writer         // over directOut

	fd   uintptr
	more bool   // the last read may have left something
	over []byte // what fasthttp has to begin with
	err  error  // why the connection ends
}

// errAnswered says that the last response was meant to be the last.
var errAnswered = errors.New("the connection has had its last response")

func (s *Server) newDirect() any {
	d := &direct{server: s}
	d.ready = d.turn
	d.in = make([]byte, readBufferSize)
	d.ctx.Response.Header.SetNoDefaultContentType(true)
	d.writer = bufio.NewWriterSize((*directOut)(d), writeBufferSize)
	return d
}

// serveDirect is called by fasthttp, which waits for it like for its own connections.
func (s *Server) serveDirect(nc net.Conn) error {
	c, ok := nc.(*directClient)
	if !ok {
		return net.ErrClosed
	}
	over, err := c.serveSimple()
	if over == nil || err != nil {
		return err
	}
	c.ahead, c.handedOn = over, true
	c.outer = &directClient{client: c.client} // after a rest it is ours again
	return s.fasthttp().ServeConn(c.client)
}

// serveSimple returns what was read of a request that is not simple, or why the
// connection has ended.
func (c *client) serveSimple() (over []byte, err error) {
	d, _ := c.server.directs.Get().(*direct)
	d.client = c
	d.ctx.Init2(c, quietLogger{c.server.options.Log}, false)
	c.out = d.writer
	c.turning.Store(true)
	err = c.turns(d.ready)
	c.turning.Store(false)
	c.out = nil
	if err != nil {
		c.roused(0, err)
	} else if over, err = d.over, d.err; err == io.EOF || err == errAnswered {
		err = nil
	}
	d.ctx.Response.Reset()
	d.ctx.Response.Header.SetNoDefaultContentType(true)
	d.client, d.over, d.err, d.more = nil, nil, nil, false
	d.writer.Reset((*directOut)(d))
	c.server.directs.Put(d)
	return over, err
}

// turns calls ready until it is done. The poller is not asked where nobody has to wait.
func (c *client) turns(ready func(fd uintptr) bool) error {
	if a, ok := c.socket.(*accepted); ok {
		if done, err := a.turn(ready); done || err != nil {
			return err
		}
	}
	return c.raw.Read(ready)
}

// turn is called by the poller whenever something may have come; false means wait.
func (d *direct) turn(fd uintptr) (done bool) {
	d.fd = fd
	for {
		n, err := d.receive()
		switch {
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			d.err = err
			return true
		}
		for come := d.in[:n]; len(come) > 0; {
			rc, _ := d.server.contexts.Get().(*requestContext)
			size, ok := rc.readSimple(come)
			if !ok {
				rc.release()
				d.err = d.writer.Flush() // of the requests before it
				d.over = bytes.Clone(come)
				return true
			}
			come = come[size:]
			if d.err = d.answer(rc, len(come) == 0); d.err != nil {
				return true
			}
		}
		if !d.more {
			return false
		}
	}
}

// receive reads what has come. It does not wait.
func (d *direct) receive() (int, error) {
	n, err := socket.Receive(d.fd, d.in)
	d.more = n == len(d.in)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	c := d.client
	if c.rest.Load() != busy {
		c.rouse()
	}
	c.in.heard, c.woken = true, false
	return n, nil
}

// answer has a request answered. If it is the last that has come, it prepares the wait for
// the next.
func (d *direct) answer(rc *requestContext, waits bool) error {
	c, resp := d.client, &d.ctx.Response
	c.composed, c.ended, rc.head.simple = false, time.Time{}, true
	rc.came(&d.ctx, c, time.Now())
	rc.complete()
	last := c.last.Load()
	switch {
	case c.dropped:
		return errAnswered
	case !c.composed:
		if err := resp.Write(d.writer); err != nil {
			return err
		}
		last = last || resp.Header.ConnectionClose()
		resp.Reset()
		resp.Header.SetNoDefaultContentType(true)
	}
	if waits || last {
		if err := d.writer.Flush(); err != nil {
			return err
		}
	}
	if last {
		return errAnswered
	}
	if !waits {
		return nil
	}
	c.rest.Store(idle)
	if d.server.ending.Load() {
		return errAnswered
	}
	if c.ended.IsZero() {
		c.ended = time.Now()
	}
	patience := max(d.server.limits.Load().Idle, 0)
	return c.readUntil(c.ended.Add(patience), patience)
}

// directOut is a direct that is written to.
type directOut direct

// Write implements io.Writer. Only what the socket does not take at once has a deadline.
func (d *directOut) Write(b []byte) (int, error) {
	flags := 0
	if d.client.last.Load() {
		flags = unix.MSG_MORE // the end follows at once
	}
	n, err := socket.Send(d.fd, b, flags)
	if err != nil && err != syscall.EAGAIN || n == len(b) {
		return n, err
	}
	rest, err := d.client.Write(b[n:])
	d.client.ended = time.Time{} // it may have taken long
	return n + rest, err
}
