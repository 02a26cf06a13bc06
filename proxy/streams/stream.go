package streams

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// keptBlock is the largest memory for field blocks that a stream keeps for the next.
const keptBlock = 4 << 10

// Stream is one request and its response. One goroutine reads the response, and
// closes the stream; another may send the request's body meanwhile, and must have
// ended by then. It is pooled. What stands from send on is guarded by the
// connection's lock.
type Stream struct {
	conn    *Conn
	block   []byte        // the field blocks of the request
	sent    chan struct{} // the part was, or never will be
	arrived chan struct{} // something has, or somebody wants to be looked at

	send     frame.Sender
	granted  window // what we let the pod send
	unread   frame.Queue
	ahead    *exchange.Ahead // of the client; nil: it asks for one thing at a time
	wide     bool            // the pod was granted all of streamWindow
	head     Head
	header   exchange.Header
	hints    []exchange.Header // that nobody has asked for yet
	trailer  exchange.Trailer
	received int64 // of the body
	informed int   // informational responses
	headed   bool  // the head has come
	bodiless bool  // the response has no body, whatever its head says
	connect  bool  // the request is an extended CONNECT
	ended    bool  // the response has come in full
	asked    bool  // the request has gone in full
	moved    time.Time
	opened   time.Time
	err      error // the stream came to no good end
}

func newStream() *Stream {
	return &Stream{sent: make(chan struct{}, 1), arrived: make(chan struct{}, 1)}
}

// WebSocket is the one protocol that streams become tunnels of (RFC 8441).
const WebSocket = "websocket"

// wantsWebSocket reports whether a request asks for a WebSocket, with a key that
// somebody can answer for.
func wantsWebSocket(r *exchange.Request) bool {
	return r.Upgrade != nil && exchange.EqualFold(r.Upgrade, WebSocket) && (r.UpgradeKey != nil || r.Header.Get("Sec-WebSocket-Key") != nil)
}

// Open begins a request with its head and, if last, all of its body, which is
// borrowed until the stream is closed. It does not wait. The error is ErrFull or
// ErrClosing. One that asks for a WebSocket is an extended CONNECT where the pod takes
// these, and if that is granted the Head says so; elsewhere it is what it is without.
func (c *Conn) Open(r *exchange.Request, body []byte, last bool) (*Stream, error) {
	s, _ := c.client.streams.Get().(*Stream)
	s.conn = c
	s.bodiless = string(r.Method) == http.MethodHead
	s.connect = wantsWebSocket(r) && c.Connects()
	last = last && !s.connect
	s.compose(r, last)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.roomy() {
		full := !c.closing
		s.release()
		if full {
			return nil, ErrFull
		}
		return nil, ErrClosing
	}
	s.send.ID, s.send.Window = c.next, c.out.Initial
	s.granted.left = firstWindow
	if p, ok := r.Peer.(exchange.Fetcher); ok {
		s.ahead = p.Ahead()
	}
	s.opened = time.Now()
	s.moved = s.opened
	c.streams[c.next] = s
	if c.next += 2; c.next > frame.MaxWindow { // the last number that there is
		c.closing = true
	}
	// A server of gRPC takes the end of a request from a DATA frame only.
	c.out.Send(&s.send, frame.Part{Head: s.block, Data: body, Last: last, Apart: r.Body != nil})
	c.fill()
	c.kick()
	return s, nil
}

// compose makes the field block of the request's head.
func (s *Stream) compose(r *exchange.Request, last bool) {
	method := r.Method
	if s.connect {
		method = []byte(http.MethodConnect)
	}
	b := frame.AppendRequest(s.block[:0], method, r.Host, r.Target, s.conn.secure)
	if s.connect {
		b = frame.AppendField(b, []byte(":protocol"), []byte(WebSocket))
	}
	for _, f := range r.Header.Fields() {
		if s.connect && exchange.EqualFold(f.Name, "sec-websocket-key") { // has no meaning there
			continue
		}
		b = frame.AppendField(b, f.Name, f.Value)
	}
	if r.Body != nil && r.Length >= 0 {
		var text [20]byte
		b = frame.AppendField(b, []byte("content-length"), strconv.AppendInt(text[:0], r.Length, 10))
	}
	if r.TakesTrailers {
		b = frame.AppendField(b, []byte("te"), []byte("trailers"))
	}
	if !last && r.Trailer.Announced != nil {
		b = frame.AppendField(b, []byte("trailer"), r.Trailer.Announced)
	}
	s.block = b
}

// Arrived gets a token when it is worth looking at the stream again. Others may put
// one there to have somebody look.
func (s *Stream) Arrived() chan struct{} { return s.arrived }

// Moved is when anything was last sent or received.
func (s *Stream) Moved() time.Time {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.moved
}

// Wanted reports whether there is anybody to send the rest of the request to.
func (s *Stream) Wanted() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.err == nil && !s.asked
}

// Hints returns the fields of each 103 (Early Hints) that has come since it was called
// last.
func (s *Stream) Hints() []exchange.Header {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	hints := s.hints
	s.hints = nil
	return hints
}

// Head returns the head of the response, and puts its fields into h, whose memory
// the stream gets, once it has come. It does not wait.
func (s *Stream) Head(h *exchange.Header) (Head, bool, error) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if !s.headed {
		return Head{}, false, s.err
	}
	*h, s.header = s.header, *h
	return s.head, true, nil
}

// Read moves what has come of the body into p. It does not wait: without anything
// it returns 0 and nil. The error is io.EOF when there is nothing more to come.
func (s *Stream) Read(p []byte) (int, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.unread.Len() > 0 {
		n := s.unread.Read(p)
		c.grantStream(s, n)
		return n, nil
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.ended:
		return 0, io.EOF
	}
	return 0, nil
}

// Whole returns what is there of the body, and whether that is all. It is valid
// until the body is read.
func (s *Stream) Whole() ([]byte, bool) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if !s.ended {
		return nil, false // what is there may move
	}
	return s.unread.Bytes(), true
}

// Trailer returns the fields behind the body. They are known once Read has returned
// io.EOF, or Whole true.
func (s *Stream) Trailer() []exchange.Field { return s.trailer.Header.Fields() }

// Send sends part of the request's body, and returns when all of it is on its way,
// or never will be. last ends the request, with the trailer's fields behind it. It
// fails where nothing can be sent for timeout.
func (s *Stream) Send(p []byte, last bool, trailer []exchange.Field, timeout time.Duration) error {
	if err := s.awaitSent(timeout); err != nil { // the head, for one
		return err
	}
	part := frame.Part{Data: p, Last: last}
	if len(trailer) > 0 {
		start := len(s.block)
		for _, f := range trailer {
			s.block = frame.AppendField(s.block, f.Name, f.Value)
		}
		part.Trailer = s.block[start:]
	}
	c := s.conn
	c.mu.Lock()
	if err := s.err; err != nil || s.asked {
		c.mu.Unlock()
		return err
	}
	c.out.Send(&s.send, part)
	c.fill()
	c.kick()
	s.moved = time.Now()
	c.mu.Unlock()
	return s.awaitSent(timeout)
}

// awaitSent waits until nothing is due.
func (s *Stream) awaitSent(timeout time.Duration) error {
	c := s.conn
	c.mu.Lock()
	err, due := s.err, s.send.Due
	c.mu.Unlock()
	if err != nil || !due {
		return err
	}
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
		err, due, stuck := s.err, s.send.Due, late && s.send.Stuck()
		c.mu.Unlock()
		switch {
		case err != nil || !due:
			return err
		case stuck:
			return ErrSilent
		}
	}
}

// Reset ends the stream from this side: the response is not needed any more. A Send of
// the request's body fails.
func (s *Stream) Reset() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.reset()
}

func (s *Stream) reset() {
	c := s.conn
	if c.streams[s.send.ID] != s {
		return
	}
	code := http2.ErrCodeCancel
	if s.ended { // all is said; only we have not ended
		code = http2.ErrCodeNo
	}
	if !c.heard.After(s.opened) && time.Since(s.opened) > silence {
		c.closing = true
	}
	c.out.Pending = frame.AppendReset(c.out.Buffer(), s.send.ID, code)
	c.abandon(s, ErrLost)
	c.kick()
}

// Close ends the stream, wherever it stands, and frees it. Nobody may use it any
// more.
func (s *Stream) Close() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.reset()
	s.release()
}

// release gives s back.
func (s *Stream) release() {
	client := s.conn.client
	if s.wide && s.ahead != nil {
		s.ahead.Give(streamWindow - firstWindow)
	}
	s.unread.Reset()
	block := s.block[:0]
	if cap(block) > keptBlock {
		block = nil
	}
	drain(s.sent)
	drain(s.arrived)
	*s = Stream{block: block, sent: s.sent, arrived: s.arrived, unread: s.unread}
	client.streams.Put(s)
}

func drain(ch chan struct{}) {
	select {
	case <-ch:
	default:
	}
}
