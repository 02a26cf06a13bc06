package h2

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

const (
	// streamWindow and connWindow are how many bytes of request bodies a client may send
	// before they are read, per stream and per connection.
	streamWindow = 256 << 10
	connWindow   = 1 << 20
	// deadlineSlack: a deadline may expire early by 1/deadlineSlack of Options.Timeout,
	// since setting one costs more than checking the time.
	deadlineSlack = 12
)

var (
	errReset = errors.New("the client has reset the stream")
	errOver  = errors.New("the connection is over")
	errDone  = errors.New("everything was served before the connection was to end")
	errRests = errors.New("the connection rests")
)

// conn is one connection, from its beginning or a rest to the next or its end. One goroutine
// reads from it and owns the fields above mu; mu guards the fields below it and those of each
// stream.
type conn struct {
	kept
	covered  atomic.Pointer[string] // the last host that peer.Covers agreed to
	inbound  inbound
	writers  sync.WaitGroup
	handlers sync.WaitGroup
	wait     atomic.Int32 // one of the states of rest.go
	ahead    exchange.Ahead
	looks    *time.Timer

	mu       sync.Mutex
	streams  map[uint32]*stream // open or half closed
	running  int                // requests whose goroutine has not ended
	seen     uint32             // what last was at the last look
	flushing bool               // a goroutine writes what is pending
	parting  parting
	over     bool
}

// kept is what a connection has to remember while it rests, not least what it has cost us.
// What stands from last on, mu guards.
type kept struct {
	server *Server
	nc     net.Conn
	peer   *Peer
	limit  int  // of streams
	begun  bool // a frame has come

	last    uint32 // the client's latest stream
	closed  recent
	budget  frame.Budget
	granted window // what the client may send
	out     frame.Output
}

// inbound is how frames are read.
type inbound struct {
	frame.Input
	block    block
	starting []*stream // requests that have come; they start before the reader waits
	readBy   time.Time // the deadline in force
	until    time.Time // when the wait for the next frame ends, where it was broken off
}

// window is how much a client may still send, and how much of what it has sent is
// read but not granted again.
type window struct{ left, read int }

// recent remembers streams that have closed not long ago, since what may still come
// for them depends on how they did: two bits of sense, the id and who reset it.
type recent struct {
	ids  []uint32 // shifted left by one; the last bit says that we reset it
	most int      // of ids
	next int      // where it is full, the oldest
	late int      // small DATA frames that may still come for those that we reset, at no cost
}

// compact forgets all but those that we reset, since what is said of others when more comes for
// them does not matter to who has been idle.
func (r *recent) compact() {
	var ids []uint32
	for i := range r.ids {
		if id := r.ids[(r.next+i)%len(r.ids)]; id&1 != 0 {
			ids = append(ids, id)
		}
	}
	r.ids, r.next = slices.Clip(ids), 0
}

// latePerStream is how many small DATA frames of a stream may be on their way when we
// reset it. Who sends more has not heard of it, or does not care.
const latePerStream = 8

// leastRecent is how many are remembered at least: a client may open so many before it
// knows its limit.
const leastRecent = 256

// newRecent remembers what may still be on its way from a client that may have limit
// streams open. Until it hears that one has closed, those that are open with it may
// close, and as many take their place.
func newRecent(limit int) recent { return recent{most: max(2*limit, leastRecent)} }

func (r *recent) add(id uint32, reset bool) {
	id <<= 1
	if reset {
		id |= 1
		r.late = min(r.late+latePerStream, latePerStream*r.most)
	}
	if len(r.ids) < r.most {
		r.ids = append(r.ids, id)
		return
	}
	r.ids[r.next] = id
	r.next = (r.next + 1) % r.most
}

// find reports whether the stream is remembered, and whether we reset it.
func (r *recent) find(id uint32) (found, reset bool) {
	for _, have := range r.ids {
		if have>>1 == id {
			return true, have&1 != 0
		}
	}
	return false, false
}

func newConn(s *Server, nc net.Conn, p *Peer) *conn {
	c := &conn{kept: kept{server: s, nc: nc, peer: p, limit: s.limits.Load().Streams}, streams: map[uint32]*stream{}}
	c.granted.left = connWindow
	c.closed = newRecent(c.limit)
	c.out = frame.NewOutput(&s.buffers)
	c.inbound.Input = frame.NewInput(nc, maxString, c.field)
	return c
}

// serve takes frames, after what comes first, until the connection ends, and then ends it; or
// until it rests.
func (c *conn) serve(first func() error) {
	c.mu.Lock()
	c.looks = time.AfterFunc(c.server.options.RestAfter, c.look)
	c.mu.Unlock()
	err := first()
	if err == nil {
		err = c.read()
	}
	c.looks.Stop()
	if err == errRests {
		c.writers.Wait()
		c.handlers.Wait()
		return
	}
	c.end(err)
}

// end closes the connection for a reason.
func (c *conn) end(err error) {
	c.mu.Lock()
	c.over = true
	var f *frame.Fault
	switch {
	case errors.As(err, &f):
		c.out.Pending = frame.AppendGoAway(c.out.Pending, c.last, f.Code, f.Why)
		c.count(f)
	case !errors.Is(err, errDone):
		c.out.Pending = nil // there is nobody to read it
	}
	c.parting.stop()
	for _, s := range c.streams {
		c.abandon(s, errOver, false)
	}
	c.nc.SetWriteDeadline(time.Now().Add(frame.CloseTimeout)) // before the last write: the deadline in force may have passed
	c.kick()
	c.mu.Unlock()
	c.dropStarting()
	c.writers.Wait()
	c.nc.Close()
	c.handlers.Wait()
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
}

func (c *conn) count(f *frame.Fault) {
	switch f.Code {
	case http2.ErrCodeNo:
		return
	case http2.ErrCodeEnhanceYourCalm:
		c.server.stats.overdrew.Add(1)
	default:
		c.server.stats.faults.Add(1)
	}
	c.server.options.Log.Debug("an HTTP/2 connection ended", "client", c.peer.Client, "error", f)
}

// read takes frames until the connection ends, or rests; the error is never nil.
func (c *conn) read() error {
	for {
		if err := c.await(); err != nil {
			return err
		}
		head, f, err := c.inbound.Next()
		if err == nil {
			err = c.handle(f)
		}
		if err = c.judge(head, err); err != nil {
			return err
		}
	}
}

// greet is how a connection begins.
func (c *conn) greet() error {
	c.settings()
	return c.preface()
}

// settings sends ours.
func (c *conn) settings() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Pending = frame.AppendSettings(c.out.Buffer(),
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.limit)},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(max(c.server.options.HeadSize, c.server.limits.Load().HeadSize))}, // who is over a limit of less gets its answer
		http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1},
		http2.Setting{ID: http2.SettingNoRFC7540Priorities, Val: 1},
	)
	c.out.Pending = frame.AppendWindowUpdate(c.out.Pending, 0, connWindow-65535)
	c.kick()
}

// preface reads the first 24 bytes of a client (RFC 9113 section 3.4).
func (c *conn) preface() error {
	var got [len(http2.ClientPreface)]byte
	if err := c.patience(c.server.limits.Load().Body); err != nil {
		return err
	}
	if _, err := io.ReadFull(c.inbound.Reader, got[:]); err != nil {
		return err
	}
	if string(got[:]) != http2.ClientPreface {
		return frame.Fail(http2.ErrCodeProtocol, "the connection preface is another")
	}
	return nil
}

// await returns when the next frame begins. Requests that have come are started
// before it waits, and not sooner: the body of most follows at once, and then they
// have it in memory.
func (c *conn) await() error {
	in := &c.inbound
	if !frameBuffered(in.Reader) {
		c.start()
	}
	for {
		l := c.server.limits.Load()
		waits := l.Idle
		if in.block.open {
			waits = l.Body
		}
		if err := c.expect(waits); err != nil {
			return err
		}
		until := in.readBy
		brokenOff, err := c.peek()
		if brokenOff { // which makes the wait no longer
			in.readBy, in.until = time.Time{}, until
		}
		var timeout net.Error
		switch {
		case err == nil:
			in.until = time.Time{}
			return c.patience(l.Body) // for all of it
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return err
		}
		c.mu.Lock()
		idle, done := len(c.streams) == 0 && c.running == 0, c.parting.done
		c.mu.Unlock()
		switch {
		case done:
			return errDone
		case brokenOff && !in.block.open && idle && c.rest(until):
			return errRests
		case brokenOff:
		case in.block.open:
			return frame.Fail(http2.ErrCodeProtocol, "the field block did not arrive in time")
		case idle:
			return frame.Fail(http2.ErrCodeNo, "idle")
		}
		in.readBy = time.Time{}
	}
}

// frameBuffered reports whether the next frame has arrived in full.
func frameBuffered(r *bufio.Reader) bool {
	const header = 9
	if r.Buffered() < header {
		return false
	}
	b, err := r.Peek(header)
	return err == nil && r.Buffered() >= header+(int(b[0])<<16|int(b[1])<<8|int(b[2]))
}

// expect gives the client so long to begin its next frame, or what is left of that.
func (c *conn) expect(timeout time.Duration) error {
	if in := &c.inbound; !in.until.IsZero() {
		return c.readUntil(in.until)
	}
	return c.patience(timeout)
}

// patience gives the client so long to send the next bytes.
func (c *conn) patience(timeout time.Duration) error {
	now := time.Now()
	if left := c.inbound.readBy.Sub(now); left > timeout-timeout/deadlineSlack && left <= timeout {
		return nil
	}
	return c.readUntil(now.Add(timeout))
}

func (c *conn) readUntil(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parting.done {
		return errDone
	}
	c.inbound.readBy = t
	return c.nc.SetReadDeadline(t)
}

// judge turns what went wrong with a frame into what it means for the connection:
// nil if only a stream ends by it.
func (c *conn) judge(head http2.FrameHeader, err error) error {
	var stream http2.StreamError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &stream):
		return c.refuse(stream.StreamID, stream.Code)
	case errors.Is(err, io.ErrUnexpectedEOF) && head.Length <= 5:
		return frame.Fail(http2.ErrCodeFrameSize, "a frame is too short")
	}
	return c.inbound.Judge(err)
}

// pay takes cost from the client's budget. The lock must not be held.
func (c *conn) pay(cost int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.charge(cost)
}

// charge is pay with the lock held. It is also where replies that nobody reads are
// noticed.
func (c *conn) charge(cost int) error {
	if !c.budget.Spend(cost, time.Now()) || len(c.out.Pending) > frame.MaxPending {
		return frame.Fail(http2.ErrCodeEnhanceYourCalm, "too many frames that ask for work and bring none")
	}
	return nil
}
