package h2

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// kick sees to it that what is pending is written.
func (c *conn) kick() {
	if len(c.out.Pending) > 0 && !c.flushing {
		c.flushing = true
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
	for len(c.out.Pending) > 0 && err == nil {
		b := c.out.Take()
		over := c.over
		c.mu.Unlock()
		if now := time.Now(); !over && by.Sub(now) < c.server.options.Timeout/2 {
			by = now.Add(c.server.options.Timeout)
			c.nc.SetWriteDeadline(by)
		}
		_, err = c.nc.Write(b)
		c.server.buffers.Put(b)
		c.mu.Lock()
		c.fill()
	}
	c.flushing = false
	if err != nil {
		c.out.Pending = nil
		c.wakeReader() // nothing that it could read would be answered
		c.parting.done = true
	}
}

// wakeReader makes the reader look at what has changed.
func (c *conn) wakeReader() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// fill lets streams put their frames into what is pending.
func (c *conn) fill() {
	before := c.out.Sent
	for sent := c.out.Next(); sent != nil; sent = c.out.Next() {
		s := c.streams[sent.ID]
		if sent.Last() {
			c.answered(s)
		}
		signal(s.sent)
	}
	c.budget.Earn(frame.EarnFrame * (c.out.Sent - before))
}

// answered ends a stream on our side. A client that is still sending its request
// is told that nobody needs the rest (RFC 9113 section 8.1); through a tunnel it may
// go on.
func (c *conn) answered(s *stream) {
	s.answered = true
	if s.tunnels && !s.ended {
		return
	}
	if !s.ended {
		c.out.Pending = frame.AppendReset(c.out.Buffer(), s.send.ID, http2.ErrCodeNo)
	}
	c.forget(s, !s.ended)
}

// headBlock returns the field block that begins the response. It is valid until
// the stream's next block is made.
func (s *stream) headBlock() []byte {
	r := &s.ex.Response
	return s.appendFields(frame.AppendStatus(s.block[:0], r.Status), r.Length)
}

// appendFields appends the fields of the response's head.
func (s *stream) appendFields(b []byte, length int64) []byte {
	r := &s.ex.Response
	dated, named := false, r.Unnamed
	for _, f := range r.Header.Fields() {
		switch len(f.Name) {
		case len("Date"):
			dated = dated || exchange.EqualFold(f.Name, "date")
		case len("Server"):
			named = named || exchange.EqualFold(f.Name, "server")
		}
		b = frame.AppendField(b, f.Name, f.Value)
	}
	if !named {
		b = frame.AppendField(b, []byte("server"), []byte(serverName))
	}
	if !dated {
		b = frame.AppendField(b, []byte("date"), s.conn.server.dates.now(time.Now()))
	}
	if length >= 0 && r.Status >= 200 && r.Status != 204 && r.Status != 304 {
		var text [20]byte
		b = frame.AppendField(b, []byte("content-length"), strconv.AppendInt(text[:0], length, 10))
	}
	if r.Trailer.Announced != nil {
		b = frame.AppendField(b, []byte("trailer"), r.Trailer.Announced)
	}
	s.block = b
	return b
}

// trailerBlock returns the field block behind the response's body, nil if there is
// none. The head's stays valid.
func (s *stream) trailerBlock() []byte {
	fields := s.ex.Response.Trailer.Header.Fields()
	if len(fields) == 0 {
		return nil
	}
	start := len(s.block)
	for _, f := range fields {
		s.block = frame.AppendField(s.block, f.Name, f.Value)
	}
	return s.block[start:]
}

// transmit hands over a part of the response and returns when all of it is on its way,
// or never will be.
func (s *stream) transmit(p frame.Part) error {
	c := s.conn
	c.mu.Lock()
	if s.err != nil {
		defer c.mu.Unlock()
		return s.err
	}
	if p.Head != nil {
		s.head.expects = false // behind the head, a 100 (Continue) would be a broken trailer
	}
	c.out.Send(&s.send, p)
	c.fill()
	c.kick()
	waits := s.send.Due
	c.mu.Unlock()
	if waits {
		return s.awaitSent()
	}
	return nil
}

// awaitSent waits for the client to read, and to grant window, as long as enough
// of it goes out within each Timeout, see frame.Sender.Stuck.
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
		if late && s.send.Stuck() {
			c.reset(s.send.ID, http2.ErrCodeCancel)
			s.err = os.ErrDeadlineExceeded
		}
		err, due := s.err, s.send.Due
		c.mu.Unlock()
		if err != nil || !due {
			return err
		}
	}
}

// parting is how far a connection is on its way to a good end (RFC 9113 section
// 6.8): the first asks the client to open no more streams, and when it
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
	b := frame.AppendGoAway(c.out.Buffer(), math.MaxInt32, http2.ErrCodeNo, "leaving")
	c.out.Pending = append(frame.AppendHeader(b, len(partingPing), http2.FramePing, 0, 0), partingPing...)
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
	c.out.Pending = frame.AppendGoAway(c.out.Buffer(), c.last, http2.ErrCodeNo, "leaving")
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
