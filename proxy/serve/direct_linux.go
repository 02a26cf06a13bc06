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

// direct serves the simple requests of one connection (see simple) inside one call into
// the runtime's poller, which reads, has the request answered, writes, and then waits
// for the next. A read that begins anew makes the poller forget what it has heard before,
// so it must look at the socket first, and nearly always finds nothing; here the poller
// forgets nothing from one request to the next, and TCP_INQ tells with each read whether
// more lies there, the end included (tcp(7); the listening socket hands the option down).
// None of the system calls can wait, see package socket.
//
// Whatever waits for the client in another way is fasthttp's: the first request that is
// not simple hands the connection over, with what has been read of it.
type direct struct {
	server *Server
	client *client
	ready  func(fd uintptr) bool // the method value, made once
	ctx    fasthttp.RequestCtx
	reader *bufio.Reader // over receive
	writer *bufio.Writer // over send
	asker  socket.Inquiry

	fd   uintptr
	more bool   // the last read may have left something
	over []byte // what fasthttp has to begin with
	err  error  // why the connection ends
}

var (
	// errNothing says that nothing has come.
	errNothing = errors.New("nothing has come")
	// errAnswered says that the last response was meant to be the last.
	errAnswered = errors.New("the connection has had its last response")
)

func (s *Server) newDirect() any {
	d := &direct{server: s}
	d.ready = d.turn
	d.reader = bufio.NewReaderSize((*directIn)(d), s.options.HeadSize)
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
	return s.http.ServeConn(c.client)
}

// serveSimple returns what was read of a request that is not simple, or why the
// connection has ended.
func (c *client) serveSimple() (over []byte, err error) {
	d, _ := c.server.directs.Get().(*direct)
	d.client = c
	d.ctx.Init2(c, quietLogger{c.server.options.Log}, false)
	c.out = d.writer
	c.turning.Store(true)
	err = c.raw.Read(d.ready)
	c.turning.Store(false)
	c.out = nil
	if err != nil {
		c.roused(0, err)
	} else if over, err = d.over, d.err; err == io.EOF || err == errAnswered {
		err = nil
	}
	d.ctx.Request.Reset()
	d.ctx.Response.Reset()
	d.client, d.over, d.err, d.more = nil, nil, nil, false
	d.reader.Reset((*directIn)(d))
	d.writer.Reset((*directOut)(d))
	c.server.directs.Put(d)
	return over, err
}

// turn is called by the poller whenever something may have come; false means wait.
func (d *direct) turn(fd uintptr) (done bool) {
	d.fd = fd
	for {
		if _, err := d.reader.Peek(1); err != nil {
			if err == errNothing {
				return false
			}
			d.err = err
			return true
		}
		buffered, _ := d.reader.Peek(d.reader.Buffered())
		size, ok := simple(buffered)
		if ok {
			ok = d.ctx.Request.Header.Read(d.reader) == nil && len(buffered)-d.reader.Buffered() == size
		}
		if !ok {
			d.err = d.writer.Flush() // of the requests before it
			d.over = bytes.Clone(buffered)
			return true
		}
		if d.err = d.answer(); d.err != nil {
			return true
		}
		if d.reader.Buffered() == 0 && !d.more {
			return false
		}
	}
}

// answer has the request answered, and prepares the wait for the next.
func (d *direct) answer() error {
	c, ctx := d.client, &d.ctx
	c.composed = false
	ctx.Response.Header.SetNoDefaultContentType(true)
	d.server.begin(ctx, time.Now()).complete()
	last := c.last.Load()
	switch {
	case c.dropped:
		return errAnswered
	case !c.composed:
		if err := d.write(); err != nil {
			return err
		}
		last = last || ctx.Response.Header.ConnectionClose()
		ctx.Response.Reset()
	}
	waits := d.reader.Buffered() == 0
	if waits || last {
		if err := d.writer.Flush(); err != nil {
			return err
		}
	}
	if last {
		return errAnswered
	}
	ctx.Request.Reset()
	if !waits {
		return nil
	}
	c.rest.Store(idle)
	if d.server.ending.Load() {
		return errAnswered
	}
	patience := max(d.server.limits.Load().Idle, 0)
	return c.readUntil(time.Now().Add(patience), patience)
}

// write has fasthttp write the response.
func (d *direct) write() error {
	r := &d.ctx.Response
	if d.ctx.Request.Header.ConnectionClose() {
		r.Header.SetConnectionClose()
	}
	if d.ctx.IsHead() {
		r.SkipBody = true
	}
	return r.Write(d.writer)
}

// directIn is a direct that is read from.
type directIn direct

// Read implements io.Reader. It does not wait.
func (d *directIn) Read(b []byte) (int, error) {
	n, left, err := d.asker.Receive(d.fd, b)
	d.more = n == len(b) || left != 0
	switch {
	case err == syscall.EAGAIN:
		return 0, errNothing
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
	return n + rest, err
}
