package h2

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
)

const (
	// batch is how much is put together for one write.
	batch = 64 << 10
	// maxPending is more than streams put there: the rest are replies to a client
	// that provokes them and does not read them.
	maxPending = 4 * batch
)

// output is what a connection has to send. Control frames are put into pending as
// they arise. What streams have to send waits in their goroutines; those whose
// windows are open stand in a queue and put one frame each into pending, in turn,
// while there is room. So nothing is copied before it can be written, and who has
// much to send does not keep others waiting.
type output struct {
	pending     []byte // not yet written; from the server's buffers, nil if nothing is
	flushing    bool   // a goroutine writes what is pending
	window      int64  // of the connection
	initial     int64  // window of new streams
	first, last *stream
	resized     bool   // the next field block says that our table is empty
	block       []byte // scratch
}

// part is a part of a response.
type part struct {
	head    bool   // begins with the response's head
	data    []byte // borrowed while the part is due
	last    bool   // ends the response
	trailer bool   // with the response's trailer
}

// buffer returns pending, to be appended to.
func (c *conn) buffer() []byte {
	if c.out.pending == nil {
		b, _ := c.server.buffers.Get().(*[]byte)
		c.out.pending = (*b)[:0]
	}
	return c.out.pending
}

func (s *Server) recycle(b []byte) {
	if b != nil && cap(b) <= maxPending {
		s.buffers.Put(&b)
	}
}

// kick sees to it that what is pending is written.
func (c *conn) kick() {
	if len(c.out.pending) > 0 && !c.out.flushing {
		c.out.flushing = true
		c.writers.Go(c.flush)
	}
}

// flush writes until nothing is pending.
func (c *conn) flush() {
	// Whoever is about to send something gets to it first, and one write takes all.
	runtime.Gosched()
	var by time.Time
	var err error
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out.pending) > 0 && err == nil {
		b := c.out.pending
		c.out.pending = nil
		over := c.over
		c.mu.Unlock()
		if now := time.Now(); !over && by.Sub(now) < c.server.options.Timeout/2 {
			by = now.Add(c.server.options.Timeout)
			c.nc.SetWriteDeadline(by)
		}
		_, err = c.nc.Write(b)
		c.server.recycle(b)
		c.mu.Lock()
		c.fill()
	}
	c.out.flushing = false
	if err != nil {
		c.out.pending = nil
		c.wakeReader() // nothing that it could read would be answered
		c.parting.done = true
	}
}

// wakeReader makes the reader look at what has changed.
func (c *conn) wakeReader() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// enqueue puts a stream that has something to send, and may, at the end of the
// queue.
func (c *conn) enqueue(s *stream) {
	if !s.due || s.queued || !s.part.head && len(s.part.data) > 0 && (s.window <= 0 || c.out.window <= 0) {
		return
	}
	s.queued, s.next = true, nil
	if c.out.last == nil {
		c.out.first = s
	} else {
		c.out.last.next = s
	}
	c.out.last = s
}

// fill lets streams put their frames into pending while there is room.
func (c *conn) fill() {
	for c.out.first != nil && len(c.out.pending) < batch {
		s := c.out.first
		if c.out.first = s.next; c.out.first == nil {
			c.out.last = nil
		}
		s.queued, s.next = false, nil
		if s.due {
			c.emit(s)
		}
	}
}

// emit sends one frame of a stream, with the head if that is due, and puts the
// stream back into the queue if there is more.
func (c *conn) emit(s *stream) {
	p := &s.part
	empty := p.last && !p.trailer && len(p.data) == 0
	if p.head {
		c.appendHead(s, empty)
		p.head, s.moved = false, true
	} else if empty {
		c.out.pending = appendFrameHeader(c.buffer(), 0, http2.FrameData, http2.FlagDataEndStream, s.id)
	}
	if n := min(int64(len(p.data)), frameSize, s.window, c.out.window); n > 0 {
		var flags http2.Flags
		if p.last && !p.trailer && int(n) == len(p.data) {
			flags = http2.FlagDataEndStream
		}
		c.out.pending = append(appendFrameHeader(c.buffer(), int(n), http2.FrameData, flags, s.id), p.data[:n]...)
		p.data = p.data[n:]
		s.window -= n
		c.out.window -= n
		s.moved = true
		c.budget.earn(earnFrame)
	}
	if len(p.data) > 0 {
		c.enqueue(s) // unless it has to wait for a WINDOW_UPDATE
		return
	}
	if p.trailer {
		c.appendTrailer(s)
	}
	s.due = false
	if p.last {
		c.answered(s)
	}
	signal(s.sent)
}

// answered ends a stream on our side. A client that is still sending its request
// is told that nobody needs the rest (RFC 9113 section 8.1).
func (c *conn) answered(s *stream) {
	if !s.ended {
		c.out.pending = appendReset(c.buffer(), s.id, http2.ErrCodeNo)
	}
	s.answered = true
	c.forget(s, !s.ended)
}

// appendHead appends the response's head.
func (c *conn) appendHead(s *stream, end bool) {
	r := &s.ex.Response
	b := c.beginBlock()
	b = appendStatus(b, r.Status)
	var dated, named bool
	for _, f := range r.Header.Fields() {
		switch len(f.Name) {
		case len("Date"):
			dated = dated || exchange.EqualFold(f.Name, "date")
		case len("Server"):
			named = named || exchange.EqualFold(f.Name, "server")
		}
		b = appendField(b, f.Name, f.Value)
	}
	if !named {
		b = appendField(b, []byte("server"), []byte(serverName))
	}
	if !dated {
		b = appendField(b, []byte("date"), c.server.dates.now(time.Now()))
	}
	if r.Length >= 0 && r.Status >= 200 && r.Status != 204 && r.Status != 304 {
		var text [20]byte
		b = appendField(b, []byte("content-length"), strconv.AppendInt(text[:0], r.Length, 10))
	}
	if r.Trailer.Announced != nil {
		b = appendField(b, []byte("trailer"), r.Trailer.Announced)
	}
	c.endBlock(s, b, end)
}

func (c *conn) appendTrailer(s *stream) {
	b := c.beginBlock()
	for _, f := range s.ex.Response.Trailer.Header.Fields() {
		b = appendField(b, f.Name, f.Value)
	}
	c.endBlock(s, b, true)
}

// appendContinue appends the response 100 (Continue).
func (c *conn) appendContinue(s *stream) {
	c.endBlock(s, appendStatus(c.beginBlock(), 100), false)
}

func (c *conn) beginBlock() []byte {
	b := c.out.block[:0]
	if c.out.resized { // RFC 7541 section 4.2: what was changed is answered
		b, c.out.resized = append(b, tableEmpty), false
	}
	return b
}

func (c *conn) endBlock(s *stream, b []byte, end bool) {
	var flags http2.Flags
	if end {
		flags = http2.FlagHeadersEndStream
	}
	c.out.pending = appendBlock(c.buffer(), b, s.id, flags)
	if c.out.block = b; cap(b) > frameSize {
		c.out.block = nil
	}
}

// send hands over a part of the response and returns when all of it is on its way,
// or never will be.
func (s *stream) send(p part) error {
	c := s.conn
	c.mu.Lock()
	if s.err != nil {
		defer c.mu.Unlock()
		return s.err
	}
	s.part, s.due = p, true
	c.enqueue(s)
	c.fill()
	c.kick()
	waits := s.due
	c.mu.Unlock()
	if waits {
		return s.awaitSent()
	}
	return nil
}

// awaitSent waits for the client to read, and to grant window, as long as some of
// it goes out within each Timeout.
func (s *stream) awaitSent() error {
	c, timeout := s.conn, s.conn.server.options.Timeout
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		late := false
		select {
		case <-s.sent:
		case <-timer.C:
			late = true
			timer.Reset(timeout)
		}
		c.mu.Lock()
		if late && s.due && !s.moved {
			c.reset(s.id, http2.ErrCodeCancel)
			s.err = os.ErrDeadlineExceeded
		}
		if late {
			s.moved = false
		}
		err, due := s.err, s.due
		c.mu.Unlock()
		if err != nil || !due {
			return err
		}
	}
}

// parting is how far a connection is on its way to a good end (RFC 9113 section
// 6.8): first the client hears that it had better open no more streams, and when it
// has heard that, which the stream was that we still answer.
type parting struct {
	told  bool // GOAWAY with the largest stream id
	final bool // GOAWAY with the last we serve
	done  bool // nothing is left to be served: the reader ends
	timer *time.Timer
}

func (p *parting) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// partingPing is the payload of the PING whose answer says that GOAWAY has arrived.
const partingPing = "quayside"

// leave begins to end a connection.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parting.told || c.over {
		return
	}
	c.parting.told = true
	b := appendGoAway(c.buffer(), math.MaxInt32, http2.ErrCodeNo, "leaving")
	c.out.pending = append(appendFrameHeader(b, len(partingPing), http2.FramePing, 0, 0), partingPing...)
	c.parting.timer = time.AfterFunc(time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lastCall()
	})
	c.kick()
}

// lastCall says which streams are still served.
func (c *conn) lastCall() {
	if !c.parting.told || c.parting.final || c.over {
		return
	}
	c.parting.final = true
	c.out.pending = appendGoAway(c.buffer(), c.last, http2.ErrCodeNo, "leaving")
	c.kick()
	c.partIfDone()
}

// partIfDone ends a connection that is to end and has nothing left to do.
func (c *conn) partIfDone() {
	if c.parting.final && len(c.streams) == 0 && c.running == 0 && !c.over {
		c.parting.done = true
		c.wakeReader()
	}
}
