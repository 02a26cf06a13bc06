package h2

import (
	"io"
	"os"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// wholeBody is how large a request body may be that the handler is told to be in
// memory.
const wholeBody = 8 << 10

// requestBody is a stream as the body of its request. One goroutine at a time reads
// it; any may close it.
type requestBody stream

// Read implements io.Reader. What it takes the client may send again.
func (b *requestBody) Read(p []byte) (int, error) {
	s := (*stream)(b)
	if n, err := s.read(p); n > 0 || err != nil || len(p) == 0 {
		return n, err
	}
	timer := time.NewTimer(s.conn.server.limits.Load().Body)
	defer timer.Stop()
	for {
		var late bool
		select {
		case <-s.arrived:
		case <-timer.C:
			late = true
		}
		if n, err := s.read(p); n > 0 || err != nil {
			return n, err
		}
		if late {
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// read takes what is there; nothing and no error: wait.
func (s *stream) read(p []byte) (int, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.err != nil:
		return 0, s.err
	case s.deaf:
		return 0, io.ErrClosedPipe
	case s.unread.Len() > 0:
		n := s.unread.Read(p)
		c.grant(s, n)
		return n, nil
	case s.ended:
		return 0, io.EOF
	}
	if s.head.expects && s.received == 0 && !c.over {
		c.out.Block(s.send.ID, frame.AppendStatus(nil, 100))
		c.kick()
	}
	s.head.expects = false
	return 0, nil
}

// Close ends all reading; what still comes is dropped.
func (b *requestBody) Close() error {
	s := (*stream)(b)
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.deaf = true
	s.conn.grant(nil, s.unread.Drop())
	signal(s.arrived)
	return nil
}

// Whole implements exchange.Whole. It is asked before the body is read.
func (b *requestBody) Whole() ([]byte, bool) {
	s := (*stream)(b)
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if !s.ended || s.deaf || s.err != nil || s.unread.Len() > wholeBody || len(s.ex.Request.Trailer.Header.Fields()) > 0 {
		return nil, false
	}
	return s.unread.Bytes(), true // nothing is added to it any more
}

var _ exchange.Whole = (*requestBody)(nil)
