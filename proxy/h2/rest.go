package h2

import (
	"time"

	"quayside.io/proxy/frame"
)

// A connection that waits for its next request needs no goroutine, no buffers and no parser,
// which are nearly all that it has. One that has not been asked anything between two looks is
// let go of: what it must not forget stays (see kept), and whoever gave it to us waits for its
// next byte. One that is asked all the time pays two atomic operations for that.

// Rester is a connection that can be waited for without a goroutine of ours.
type Rester interface {
	// Rest is called by Serve, or Resume. If it reports true, that returns, and then r.Resume
	// is to be called once, which goes on to serve: when there is something to read, even if
	// it is that the client is gone, or the deadline has passed, or behind Rise. It does not
	// wait.
	Rest(until time.Time, r interface{ Resume() }) bool
	// Rise ends a rest. Any goroutine may call it. It does not wait.
	Rise()
}

// The states of conn.wait.
const (
	reading int32 = iota
	waiting       // for the next frame
	woken         // its read was broken off, so that it rests
)

// look sees whether the connection has been idle since the last look. It runs in the
// timer's goroutine.
func (c *conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
	case len(c.streams) == 0 && c.running == 0 && c.seen == c.last && c.wait.CompareAndSwap(waiting, woken):
		c.wakeReader()
	default:
		c.seen = c.last
		c.looks.Reset(c.server.options.RestAfter)
	}
}

// peek waits until the next frame begins. It reports whether it was broken off instead,
// or might have been: then the deadline in force has passed.
func (c *conn) peek() (brokenOff bool, err error) {
	c.wait.Store(waiting)
	_, err = c.inbound.Reader.Peek(1)
	if c.wait.CompareAndSwap(waiting, reading) {
		return false, err
	}
	c.mu.Lock() // until look has set its deadline
	defer c.mu.Unlock()
	c.wait.Store(reading)
	c.looks.Reset(c.server.options.RestAfter)
	return true, err
}

// rested is a connection that rests.
type rested struct {
	kept
	input frame.RestedInput
	until time.Time // when the client's patience with us ends, or ours
	told  bool      // it is to leave; guarded by Server.mu
}

// rest lets go of a connection that waits for its next frame, and reports whether it does. One
// that is still to be told something stays.
func (c *conn) rest(until time.Time) bool {
	nc, able := c.nc.(Rester)
	if !able {
		return false
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flushing || len(c.out.Pending) > 0 || c.parting.told || len(c.streams) > 0 || c.running > 0 {
		return false
	}
	r := &rested{until: until}
	if !nc.Rest(until, r) {
		return false
	}
	c.closed.compact()
	r.kept, r.input = c.kept, c.inbound.Rest()
	c.over = true // for those who know c still
	delete(s.conns, c)
	s.rested[r] = struct{}{}
	return true
}

// Resume ends the rest, and serves the connection like Server.Serve.
func (r *rested) Resume() {
	s := r.server
	c := &conn{kept: r.kept, streams: map[uint32]*stream{}}
	c.inbound.Input = r.input.Input(c.nc, maxString, c.field)
	c.inbound.until = r.until
	s.mu.Lock()
	delete(s.rested, r)
	s.conns[c] = struct{}{}
	told := r.told
	s.mu.Unlock()
	if told {
		c.leave()
	}
	c.serve(func() error { return nil })
}

// leave ends the rest so that the client is told to leave. The server's lock must be held.
func (r *rested) leave() {
	if !r.told {
		r.told = true
		r.nc.(Rester).Rise()
	}
}

// lookedAt is how many connections Spare looks at, at most.
const lookedAt = 64

// Spare begins to end a connection that waits for its next request, for the sake of a new
// one, if it finds one. The client is told, and what it asks before it knows is answered.
func (s *Server) Spare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	looked := 0
	for r := range s.rested {
		if r.last > 0 && !r.told {
			r.leave()
			return true
		}
		if looked++; looked == lookedAt {
			break
		}
	}
	looked = 0
	for c := range s.conns {
		if c.idle() {
			c.leave()
			return true
		}
		if looked++; looked == lookedAt {
			break
		}
	}
	return false
}

// idle reports whether c has served requests, none of them since the last look, and is not
// about to end.
func (c *conn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams) == 0 && c.running == 0 && c.last > 0 && c.seen == c.last && !c.parting.told && !c.over
}

// Resting is the number of connections that wait for a request with the least of memory.
func (s *Server) Resting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rested)
}
