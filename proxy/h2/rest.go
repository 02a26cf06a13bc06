package h2

import (
	"errors"
	"net"

	"golang.org/x/net/http2"

	"quayside.io/proxy/frame"
)

// A connection that waits for its next request needs no buffers: what it reads into, and
// the largest frame that came, are most of what it holds. One that has not been asked
// anything between two looks gives them back and waits for a single byte. One that is
// asked all the time pays two atomic operations for that.

// Awaiter is a connection that can also wait until something may be read, or its read
// deadline passes. It is asked after a read that was broken off, so that it holds nothing
// back itself. With TLS, a read waits with so much on its stack that the
// collector leaves this twice as large.
type Awaiter interface{ Await() error }

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
		c.wakeReader() // and who rests looks again when it is asked something
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

// rest waits for the next frame without buffers.
func (c *conn) rest() error {
	in := &c.inbound
	c.mu.Lock()
	c.looks.Stop()
	c.mu.Unlock()
	c.server.resting.Add(1)
	defer c.server.resting.Add(-1)
	in.Drop()
	for {
		if err := c.patience(c.server.limits.Load().Idle); err != nil {
			return err
		}
		var first [1]byte
		n, err := 0, error(nil)
		if w, ok := c.nc.(Awaiter); ok {
			err = w.Await()
		}
		if err == nil {
			n, err = c.nc.Read(first[:])
		}
		var timeout net.Error
		switch {
		case n > 0:
			in.Renew(c.nc, first[0])
			c.mu.Lock()
			c.looks.Reset(c.server.options.RestAfter)
			c.mu.Unlock()
			return nil
		case err == nil:
			continue
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return err
		}
		c.mu.Lock()
		done := c.parting.done
		c.mu.Unlock()
		if done {
			return errDone
		}
		return frame.Fail(http2.ErrCodeNo, "idle")
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
func (s *Server) Resting() int { return int(s.resting.Load()) }
