package serve

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

// A connection that waits for its next request needs no buffers, no parser and no
// stack of a parser, which together are twenty times as large as the rest of it. One
// that has waited for a while is parked: fasthttp is made to release it, one epoll for
// all of them waits for its next byte (see restPoll), and then it is handed to fasthttp
// again. One that is asked something all the time never pays for that. Without TLS, nothing is
// kept but its descriptor and who it is (see bare_linux.go). Where HTTP/2 is
// spoken, whoever serves that says when (see Rest), and keeps what must not be forgotten.

// The states of client.rest.
const (
	busy    int32 = iota // a request is served, or being read
	idle                 // waits for the next
	seen                 // and did at the last look
	waking               // its read was broken off, so that fasthttp lets go
	let                  // fasthttp does
	resting              // it is among Server.resting
)

// changed is fasthttp's callback for the next state of a connection.
func changed(nc net.Conn, state fasthttp.ConnState) {
	if state != fasthttp.StateIdle && state != fasthttp.StateActive {
		return
	}
	c, ok := nc.(connection)
	switch {
	case !ok:
	case state == fasthttp.StateIdle:
		c.base().rest.Store(idle)
	default: // the request may have come with the one before
		c.base().rouse()
	}
}

// rouse ends the wait for a request. It reports whether the read was broken off.
func (c *client) rouse() (woken bool) {
	if c.rest.Load() == busy || c.rest.Swap(busy) != waking {
		return false
	}
	c.reading.Lock() // until the deadline of wake is set
	defer c.reading.Unlock()
	if !c.cut {
		c.Conn.SetReadDeadline(c.readBy)
	}
	return true
}

// roused looks at what a read brought while the connection may have been waiting. A
// read that was broken off shows its timeout to fasthttp, which then closes.
func (c *client) roused(n int, err error) {
	if c.rest.Load() != busy && c.rouse() && n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		c.rest.Store(let)
	}
}

// hush makes an error the end of the connection where not a byte of the request came
// for which it was woken: fasthttp takes it for a new one, and would answer.
func (c *client) hush(n int, err error) error {
	if !c.woken {
		return err
	}
	if n > 0 {
		c.woken = false
	} else if err != nil {
		err = io.EOF
	}
	return err
}

// letRest prepares for those that rest, where they can. Without, they cost more.
func (s *Server) letRest() {
	p, err := newRestPoll()
	switch {
	case err == nil:
		s.rest = p
	case !errors.Is(err, errors.ErrUnsupported):
		s.options.Log.Warn("idle connections cost more memory than they need", "error", err)
	}
}

// lookForIdle lays to rest who waits since the last look, and ends who has rested for too
// long.
func (s *Server) lookForIdle() {
	if s.rest == nil {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		switch c.rest.Load() {
		case idle:
			c.rest.CompareAndSwap(idle, seen)
		case seen, waking: // a deadline that was set meanwhile may have hidden ours
			c.wake()
		}
	}
	for fd, b := range s.bares {
		if !b.until.IsZero() && now.After(b.until) {
			delete(s.bares, fd)
			b.end(fd)
		}
	}
	for fd, c := range s.resting {
		switch {
		case c.until.IsZero() || now.Before(c.until):
		case c.again != nil:
			s.goOnLocked(fd, c) // and ends
		default:
			s.riseLocked(fd, c)
			s.waiting.Go(func() { c.outer.Close() }) // over TLS it says so, which may take
		}
	}
}

// wake breaks off the read of a connection that waits.
func (c *client) wake() {
	c.reading.Lock()
	defer c.reading.Unlock()
	if !c.cut && (c.rest.CompareAndSwap(seen, waking) || c.rest.Load() == waking) {
		c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// Rest has a connection on which HTTP/2 is spoken rest when Options.HTTP2 returns, without
// having closed it, or again.Resume does. It reports false where it cannot.
func (c *client) Rest(until time.Time, again interface{ Resume() }) bool {
	if c.server.rest == nil || c.raw == nil || c.restless || c.server.draining.Load() {
		return false
	}
	c.until, c.again = until, again
	c.rest.Store(let)
	return true
}

// Rest is that of the connection below.
func (c *tlsClient) Rest(until time.Time, again interface{ Resume() }) bool {
	return c.client.Rest(until, again)
}

// Rise ends a rest that has begun by Rest, or is about to.
func (c *client) Rise() {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.rest.Load() == resting {
		s.goOnLocked(c.fd, c)
		return
	}
	c.risen = true
}

// Rise is that of the connection below.
func (c *tlsClient) Rise() { c.client.Rise() }

// lay is asked where a connection is to be closed. It reports whether it rests
// instead, or goes on.
func (c *client) lay() bool {
	if c.rest.Load() != let {
		return false
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.rest.CompareAndSwap(let, resting) {
		return false
	}
	laid := !c.risen && s.layLocked(c)
	if !laid {
		c.rest.Store(busy)
		if c.again != nil { // who is to be told
			c.goOn()
			return true
		}
	}
	return laid
}

func (s *Server) layLocked(c *client) bool {
	if _, open := s.clients[c]; !open || c.raw == nil || s.draining.Load() {
		return false
	}
	if c.again == nil {
		c.until = c.readBy
	}
	if s.layBareLocked(c) {
		return true
	}
	fd, err := s.rest.watch(c.raw)
	if err != nil {
		s.options.Log.Debug("an idle connection cannot be watched", "error", err)
		c.restless = true
		return false
	}
	delete(s.clients, c)
	c.fd = fd
	s.resting[fd] = c
	return true
}

// riseLocked ends the rest of a connection.
func (s *Server) riseLocked(fd int, c *client) {
	delete(s.resting, fd)
	s.clients[c] = struct{}{}
	c.rest.Store(busy)
}

// goOnLocked ends the rest of a connection, which is served again.
func (s *Server) goOnLocked(fd int, c *client) {
	s.riseLocked(fd, c)
	s.rest.forget(c.raw)
	c.goOn()
}

// goOn has a connection served again. The lock of the server must be held.
func (c *client) goOn() {
	c.woken, c.risen = true, false
	c.server.again.Add(1)
	go c.server.serveAgain(c.outer)
}

func (s *Server) serveAgain(c net.Conn) {
	defer s.again.Add(-1)
	if err := s.fasthttp().ServeConn(c); err != nil {
		s.options.Log.Debug("connection", "event", err)
	}
}

// cutRestLocked ends a connection that rests, at once: its client is not told, since that
// may take. It is not counted from now on, unless somebody serves it who is to find that
// out.
func (s *Server) cutRestLocked(fd int, c *client) {
	s.riseLocked(fd, c)
	c.Conn.Close()
	if c.again != nil {
		c.goOn()
		return
	}
	delete(s.clients, c)
	s.waiting.Go(func() { c.outer.Close() })
}

// awake has connections served again of which the next byte, or the end, has come. One that
// has just got the descriptor of another that ended may be among them: it waits for its
// next request there.
func (s *Server) awake(descriptors []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fd := range descriptors {
		if c := s.resting[fd]; c != nil {
			s.goOnLocked(fd, c)
		} else if b := s.bares[fd]; b != nil {
			s.rest.remove(fd)
			s.dressLocked(fd, b).goOn()
		}
	}
}

// cutWaiting ends every connection that rests or waits for its next request, but for those
// that wait in fasthttp, which ends them itself, and those on which HTTP/2 is spoken: who
// serves these ends them.
func (s *Server) cutWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		if c.rest.Load() != busy {
			c.hangUp()
		}
	}
	for fd, b := range s.bares {
		delete(s.bares, fd)
		b.end(fd)
	}
	for fd, c := range s.resting {
		if c.again != nil {
			s.goOnLocked(fd, c)
		} else {
			s.cutRestLocked(fd, c)
		}
	}
}

// Resting is the number of connections that wait for a request with the least of
// memory.
func (s *Server) Resting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.resting) + len(s.bares)
}
