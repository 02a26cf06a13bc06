package streams

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/frame"
)

const (
	// streamWindow is how many bytes of a response a pod may send before they are read,
	// and firstWindow how many until it shows that there are more than so many, and as
	// long as the client has too many of them, see exchange.Ahead.
	streamWindow = 256 << 10
	firstWindow  = 32 << 10
	// connWindow is the same for all streams of a connection.
	connWindow = 1 << 20
	// silence is how long a pod may send no frame at all, while requests wait for it,
	// until further requests should not use the connection.
	silence = 5 * time.Second
)

// Conn is one connection. One goroutine reads from it and owns inbound; mu guards the fields
// below it and those of each stream.
type Conn struct {
	client  *Client
	nc      net.Conn
	secure  bool
	ready   chan struct{} // closed when the pod's SETTINGS have come, or never will
	done    chan struct{} // closed when all is over
	inbound inbound
	writers sync.WaitGroup

	mu        sync.Mutex
	streams   map[uint32]*Stream // open or half closed
	next      uint32             // the stream that is opened next
	limit     int                // how many there may be
	settled   bool               // the pod's SETTINGS have come
	connects  bool               // it takes extended CONNECT
	closing   bool               // no more streams
	over      bool
	err       error // why it is over
	idleSince time.Time
	heard     time.Time // when the last frame came
	budget    frame.Budget
	granted   window // what all streams may send
	out       frame.Output
	flushing  bool   // a goroutine writes what is pending
	written   uint32 // streams before this one may have been written, in part
}

// inbound is how frames are read.
type inbound struct {
	frame.Input
	block  block
	frames int // that have come; only the first counts
}

// window is how much a pod may still send, and how much of what it has sent is not
// granted again.
type window struct{ left, read int }

func newConn(cl *Client, nc net.Conn, secure bool) *Conn {
	now := time.Now()
	c := &Conn{client: cl, nc: nc, secure: secure, ready: make(chan struct{}), done: make(chan struct{}), streams: map[uint32]*Stream{}, next: 1, limit: cl.options.Streams, idleSince: now, heard: now}
	c.granted.left = connWindow
	c.out = frame.NewOutput(&cl.buffers)
	c.inbound.Input = frame.NewInput(nc, maxBlock, c.field)
	return c
}

// Ready is closed once the pod has said how many requests it takes, or the
// connection is over; then Err says why.
func (c *Conn) Ready() <-chan struct{} { return c.ready }

// Done is closed once the connection has ended, with every goroutine of its own.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection is over, or nil while it is not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Usable reports whether requests may be opened at all; ErrFull does not count.
func (c *Conn) Usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closing && !c.over
}

// Roomy reports whether the connection takes one more request now.
func (c *Conn) Roomy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roomy()
}

func (c *Conn) roomy() bool { return !c.closing && c.settled && len(c.streams) < c.limit }

// Limit is how many requests the connection carries at once.
func (c *Conn) Limit() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit
}

// Connects reports whether requests may be extended CONNECTs (RFC 8441).
func (c *Conn) Connects() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connects
}

// Idle returns since when the connection has had no request, and whether it has
// none.
func (c *Conn) Idle() (since time.Time, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idleSince, len(c.streams) == 0
}

// Shut lets no more requests in, and ends the connection when those there are have
// ended.
func (c *Conn) Shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.endIfDone()
}

// ShutIdle is Shut for a connection that carries no request, and reports whether it is one:
// then none will begin, and the caller may close what is below.
func (c *Conn) ShutIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) > 0 || c.over {
		return false
	}
	c.closing = true
	c.endIfDone()
	return true
}

// Close ends the connection, whatever it carries.
func (c *Conn) Close() { c.nc.Close() }

// endIfDone ends a connection that has nothing left to do.
func (c *Conn) endIfDone() {
	if c.closing && len(c.streams) == 0 && !c.over {
		c.nc.SetReadDeadline(time.Unix(1, 0)) // the reader ends it
	}
}

// errParted is why the reader ends that was stopped by us.
var errParted = frame.Fail(http2.ErrCodeNo, "done")

// serve reads until the connection ends, and then ends it.
func (c *Conn) serve() {
	defer close(c.done)
	c.greet()
	err := c.read()
	c.mu.Lock()
	if c.closing && len(c.streams) == 0 && isTimeout(err) {
		err = errParted
	}
	c.over, c.closing, c.err = true, true, err
	var f *frame.Fault
	if errors.As(err, &f) {
		c.out.Pending = frame.AppendGoAway(c.out.Buffer(), 0, f.Code, f.Why)
	} else {
		c.out.Pending = nil // there is nobody to read it
	}
	for _, s := range c.streams {
		c.abandon(s, c.whyLost(s, err))
	}
	if !c.settled {
		c.settled = true
		close(c.ready)
	}
	c.nc.SetWriteDeadline(time.Now().Add(frame.CloseTimeout))
	c.kick()
	c.mu.Unlock()
	if f == nil {
		c.nc.Close()
	}
	c.writers.Wait()
	c.nc.Close()
}

// whyLost is what the end of the connection means for a stream.
func (c *Conn) whyLost(s *Stream, err error) error {
	var f *frame.Fault
	switch {
	case s.send.ID >= c.written:
		return ErrUnseen
	case errors.As(err, &f):
		return fmt.Errorf("%w: %s", ErrMalformed, f.Why)
	}
	return fmt.Errorf("%w: %v", ErrLost, err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// greet sends the preface and our SETTINGS (RFC 9113 section 3.4).
func (c *Conn) greet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Pending = frame.AppendSettings(append(c.out.Buffer(), http2.ClientPreface...),
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: firstWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(min(c.client.options.HeadSize, math.MaxInt32))},
	)
	c.out.Pending = frame.AppendWindowUpdate(c.out.Pending, 0, connWindow-65535)
	c.kick()
}

// read takes frames until the connection ends; the error is never nil.
func (c *Conn) read() error {
	for {
		_, f, err := c.inbound.Next()
		if err == nil {
			err = c.handle(f)
		}
		if err = c.judge(err); err != nil {
			return err
		}
	}
}

// judge turns what went wrong with a frame into what it means for the connection:
// nil if only a stream ends by it.
func (c *Conn) judge(err error) error {
	var stream http2.StreamError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &stream):
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.refuse(stream.StreamID, stream.Code, "a frame breaks the protocol")
	case errors.Is(err, io.EOF) && c.inbound.frames == 0:
		return frame.Fail(http2.ErrCodeProtocol, "the pod closed the connection instead of speaking HTTP/2")
	}
	return c.inbound.Judge(err)
}

// charge takes cost from the pod's budget. It is also where replies that nobody
// reads are noticed.
func (c *Conn) charge(cost int) error {
	if !c.budget.Spend(cost, c.heard) || len(c.out.Pending) > frame.MaxPending {
		return frame.Fail(http2.ErrCodeEnhanceYourCalm, "too many frames that ask for work and bring none")
	}
	return nil
}

// kick sees to it that what is pending is written.
func (c *Conn) kick() {
	if len(c.out.Pending) > 0 && !c.flushing {
		c.flushing = true
		c.writers.Go(c.flush)
	}
}

// flush writes until nothing is pending.
func (c *Conn) flush() {
	// Whoever is about to send something gets to it first, and one write takes all.
	runtime.Gosched()
	var by time.Time
	var err error
	timeout := c.client.options.WriteTimeout
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out.Pending) > 0 && err == nil {
		b := c.out.Take()
		over := c.over
		c.written = c.next
		c.mu.Unlock()
		if now := time.Now(); !over && by.Sub(now) < timeout/2 {
			by = now.Add(timeout)
			c.nc.SetWriteDeadline(by)
		}
		_, err = c.nc.Write(b)
		c.client.buffers.Put(b)
		c.mu.Lock()
		c.fill()
	}
	c.flushing = false
	if err != nil {
		c.out.Pending = nil
		c.closing = true
		c.nc.Close() // nothing that the pod says would be answered
	}
}

// fill lets streams put their frames into what is pending.
func (c *Conn) fill() {
	before := c.out.Sent
	for sent := c.out.Next(); sent != nil; sent = c.out.Next() {
		s := c.streams[sent.ID]
		if sent.Last() {
			s.asked = true
			c.forgetIfDone(s)
		}
		signal(s.sent)
	}
	c.budget.Earn(frame.EarnFrame * (c.out.Sent - before)) // pods measure the line by pings while they are sent to
}

// signal wakes who waits on ch, now or the next time.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
