package h2

import (
	"errors"
	"io"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
	"quayside.io/proxy/route"
)

// serverName is what a response says that came without a Server field.
const serverName = "quayside"

// keptBlock is the largest memory for field blocks that a stream keeps for the next.
const keptBlock = 4 << 10

// stream is one request and its response. It is pooled with its memory. What stands
// from send on is guarded by the connection's lock.
type stream struct {
	conn     *conn
	ex       exchange.Exchange
	head     requestHead
	text     []byte // what pseudo fields said
	path     []byte
	block    []byte // the field blocks of the response
	gone     atomic.Bool
	connects bool          // it began with an extended CONNECT
	tunnels  bool          // which was granted: both directions end by themselves
	sent     chan struct{} // the part was, or never will be
	arrived  chan struct{} // more of the body has, or its end

	send     frame.Sender
	granted  window // what we let the client send
	unread   frame.Queue
	received int64           // of the body
	ended    bool            // the request has come in full
	deaf     bool            // nobody reads the body any more
	answered bool            // the response has gone in full
	wake     chan<- struct{} // of who wants to know that the client is gone
	err      error           // the stream came to no good end
}

func newStream() *stream {
	return &stream{sent: make(chan struct{}, 1), arrived: make(chan struct{}, 1)}
}

func (s *Server) acquire(c *conn, id uint32) *stream {
	st, _ := s.streams.Get().(*stream)
	st.conn, st.send.ID = c, id
	st.head.length = -1
	return st
}

// release gives s back. Nobody else knows it any more.
func (s *stream) release() {
	server := s.conn.server
	s.ex.Reset()
	s.unread.Reset()
	if cap(s.block) > keptBlock {
		s.block = nil
	}
	*s = stream{ex: s.ex, text: s.text[:0], path: s.path[:0], block: s.block[:0], sent: s.sent, arrived: s.arrived, unread: s.unread}
	server.streams.Put(s)
}

// start begins the requests that have come. If they are the last, the client is told
// first: it has GOAWAY before it has the answer, and opens no stream that is refused.
func (c *conn) start() {
	if c.server.leaving.Load() && c.last > 0 || c.servedAll() {
		c.leave()
	}
	in := &c.inbound
	for i, s := range in.starting {
		in.starting[i] = nil
		if s.gone.Load() { // reset as soon as it was opened
			s.refuseUnseen(exchange.StatusClientGone)
			c.mu.Lock()
			c.running--
			c.mu.Unlock()
			continue
		}
		c.server.stats.streams.Add(1)
		c.handlers.Go(s.serve)
	}
	in.starting = in.starting[:0]
}

// servedAll reports whether the client has asked for as much as one connection may
// carry: its streams have odd numbers.
func (c *conn) servedAll() bool {
	most := c.server.limits.Load().Requests
	return most > 0 && (int(c.last)+1)/2 >= most
}

// dropStarting counts the requests that came with the end of the connection, and
// frees what was being read.
func (c *conn) dropStarting() {
	for _, s := range c.inbound.starting {
		s.refuseUnseen(exchange.StatusClientGone)
	}
	if b := &c.inbound.block; b.open && b.stream != nil {
		b.stream.release()
	}
}

// refuseUnseen counts a request whose answer nobody is sent.
func (s *stream) refuseUnseen(status int) {
	s.identify()
	s.ex.Answer(status, "")
	s.conn.server.options.Handler.Handle(&s.ex)
	s.observe(true)
	s.release()
}

func (s *stream) observe(broken bool) {
	if o := s.ex.Observer; o != nil {
		o.Finished(&s.ex, broken)
	}
}

// identify says who asks.
func (s *stream) identify() {
	r := &s.ex.Request
	peer := s.conn.peer
	r.Peer, r.TLS, r.Handshake, r.Received, r.Protocol = s, peer.TLS, peer.Handshake, time.Now(), "HTTP/2.0"
	r.Client, r.Port = netip.AddrPortFrom(peer.Client, 0), peer.Port
}

// Gone implements exchange.Peer.
func (s *stream) Gone() bool { return s.gone.Load() }

// Ahead implements exchange.Fetcher.
func (s *stream) Ahead() *exchange.Ahead { return &s.conn.ahead }

// WakeWhenGone implements exchange.Waker.
func (s *stream) WakeWhenGone(ch chan<- struct{}) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.wake = ch; s.gone.Load() {
		signal(ch)
	}
}

// maxHints is the largest field block of an informational response that is sent, if
// it need not wait.
const maxHints = 8 << 10

// Inform implements exchange.Informer.
func (s *stream) Inform(status int, h *exchange.Header) {
	b := frame.AppendStatus(nil, status)
	for _, f := range h.Fields() {
		b = frame.AppendField(b, f.Name, f.Value)
	}
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err == nil && !c.over && len(b) <= maxHints && len(c.out.Pending) < frame.MaxPending/2 {
		c.out.Block(s.send.ID, b)
		c.kick()
	}
}

// serve answers the request.
func (s *stream) serve() {
	c := s.conn
	defer c.server.stats.streams.Add(-1)
	err := s.answer()
	if !s.tunnels {
		s.closeBody()
	}
	c.mu.Lock()
	s.ex.Request.Size += s.received
	c.mu.Unlock()
	s.observe(err != nil)
	if s.tunnels {
		s.tunnel()
	}
	c.mu.Lock()
	if c.streams[s.send.ID] == s {
		c.reset(s.send.ID, codeOf(err))
	}
	s.deaf = true
	c.grant(nil, s.unread.Len())
	if err == nil {
		c.budget.Earn(frame.EarnAnswer)
	}
	c.running--
	c.partIfDone()
	c.mu.Unlock()
	s.release()
}

// closeBody frees what the response is made of.
func (s *stream) closeBody() {
	if b := s.ex.Response.Body; b != nil {
		s.ex.Response.Body = nil
		b.Close()
	}
}

// codeOf is why a stream is reset whose response broke off.
func codeOf(err error) http2.ErrCode {
	var reset *exchange.StreamReset
	switch {
	case errors.Is(err, errGone):
		return http2.ErrCodeCancel
	case errors.As(err, &reset):
		return http2.ErrCode(reset.Code)
	}
	return http2.ErrCodeInternal
}

var (
	errGone   = errors.New("the client went away before it was answered")
	errPanic  = errors.New("the front end panicked")
	errLength = errors.New("the response's body is not as long as it says")
)

// answer asks the handler and sends what it says.
func (s *stream) answer() (err error) {
	o := &s.conn.server.options
	defer func() {
		if r := recover(); r != nil {
			o.Log.Error("a request made the front end panic", "panic", r, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	s.identify()
	s.judge()
	o.Handler.Handle(&s.ex)
	r := &s.ex.Response
	if s.connects {
		s.refusePretence()
	}
	switch {
	case r.Upgraded != nil:
		if err := s.transmit(frame.Part{Head: s.grantBlock()}); err != nil {
			return err
		}
		s.tunnels = true
		return nil
	case r.Status == exchange.StatusClientGone || r.Status < 200:
		return errGone
	case string(s.ex.Request.Method) == "HEAD":
		return s.transmit(frame.Part{Head: s.headBlock(), Last: true})
	case r.Reset != nil && isGRPC(&s.ex.Request):
		return r.Reset // it knows better than we what its server means
	case r.Body == nil && r.Status >= 300 && isGRPC(&s.ex.Request):
		return s.transmit(frame.Part{Head: s.statusBlock(), Last: true})
	case r.Body == nil:
		r.Sent = int64(len(r.Text))
		return s.transmit(frame.Part{Head: s.headBlock(), Data: r.Text, Last: true})
	}
	return s.stream()
}

// judge answers what is well formed and not for us.
func (s *stream) judge() {
	r := &s.ex.Request
	if s.ex.Response.Status != 0 {
		return // too large
	}
	var fit bool
	s.path, fit = route.Normalize(s.path[:0], r.Target)
	r.Path = s.path
	switch {
	case s.connects && r.Upgrade == nil:
		s.ex.Answer(501, "501 Not Implemented: the only protocol that is tunnelled here is websocket\n")
	case string(r.Method) == "CONNECT" || string(r.Method) == "TRACE":
		s.ex.Answer(400, "400 Bad Request: the method is not served here\n")
	case !exchange.EqualFold(s.head.scheme, "http") && !exchange.EqualFold(s.head.scheme, "https"):
		s.ex.Answer(400, "400 Bad Request: the scheme is neither http nor https\n")
	case len(r.Host) == 0 || !exchange.ValidHost(r.Host):
		s.ex.Answer(400, "400 Bad Request: the host is malformed\n")
	case s.head.unknown:
		s.ex.Answer(400, "400 Bad Request: the expectation is unknown\n")
	case !fit:
		s.ex.Answer(400, "400 Bad Request: the target is malformed\n")
	case !s.conn.covers(r.Host):
		s.ex.Answer(421, "421 Misdirected Request: the certificate of this connection is not for this host\n")
	}
}

// covers reports whether this connection may carry requests for a host.
func (c *conn) covers(host []byte) bool {
	if c.peer.Covers == nil {
		return true
	}
	name, _ := exchange.SplitHost(host)
	if known := c.covered.Load(); known != nil && string(name) == *known {
		return true
	}
	text := string(name)
	if !c.peer.Covers(text) {
		return false
	}
	c.covered.Store(&text)
	return true
}

// stream sends a response whose body is read while it is sent.
func (s *stream) stream() error {
	r := &s.ex.Response
	var shown []byte
	if w, ok := r.Body.(exchange.Whole); ok {
		so, whole := w.Whole()
		if whole {
			r.Sent = int64(len(so))
			return s.transmit(frame.Part{Head: s.headBlock(), Data: so, Last: true, Trailer: s.trailerBlock()})
		}
		shown = so
	}
	w := &responseWriter{stream: s, headless: len(shown) > 0} // the head goes with what is there already
	if !w.headless {
		if err := s.transmit(frame.Part{Head: s.headBlock()}); err != nil {
			return err
		}
	}
	if _, err := io.Copy(w, r.Body); err != nil {
		return err
	}
	if r.Length >= 0 && w.written != r.Length {
		return errLength
	}
	return s.transmit(frame.Part{Head: w.head(), Last: true, Trailer: s.trailerBlock()})
}

// responseWriter sends a body piece by piece.
type responseWriter struct {
	*stream
	headless bool // the head has yet to be sent
	written  int64
}

// Write implements io.Writer.
func (w *responseWriter) Write(p []byte) (int, error) {
	if w.written += int64(len(p)); w.ex.Response.Length >= 0 && w.written > w.ex.Response.Length {
		return 0, errLength
	}
	if err := w.transmit(frame.Part{Head: w.head(), Data: p}); err != nil {
		return 0, err
	}
	w.ex.Response.Sent = w.written
	return len(p), nil
}

// head returns the head's field block if it has yet to be sent.
func (w *responseWriter) head() []byte {
	if !w.headless {
		return nil
	}
	w.headless = false
	return w.headBlock()
}

// tooLarge is what answers a head beyond the limits.
func (s *Server) tooLarge(target bool) (status int, text string) {
	l := s.limits.Load()
	switch {
	case target:
		return 414, "414 URI Too Long: the limit is " + strconv.Itoa(l.LineSize) + " bytes\n"
	case l.LineSize > 0:
		return 431, "431 Request Header Fields Too Large: the limit is " + strconv.Itoa(l.HeadSize) + " bytes, and of one " + strconv.Itoa(l.LineSize) + "\n"
	}
	return 431, "431 Request Header Fields Too Large: the limit is " + strconv.Itoa(l.HeadSize) + " bytes\n"
}
