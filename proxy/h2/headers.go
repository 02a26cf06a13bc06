package h2

import (
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

const (
	// maxBlock is the largest field block in its compressed form, unless the limit of heads
	// is larger, and maxString the largest name or value in it. A larger one ends the
	// connection, a smaller one that unfolds to more than that limit is answered 431.
	maxBlock  = 64 << 10
	maxString = 256 << 10
	// maxContinuations is how many frames may follow a HEADERS frame.
	maxContinuations = 16
)

// block is a field block that arrives, in one frame or more.
type block struct {
	open    bool // more frames are to come
	id      uint32
	end     bool          // the stream ends with it
	code    http2.ErrCode // why the stream is reset when it has been read, if it is
	stream  *stream       // of a new request; nil: the fields are a trailer, or nobody's
	trailer exchange.Trailer
	frames  int
	bytes   int    // compressed
	size    int    // as the fields count against the limit
	large   bool   // over it
	target  bool   // by its :path
	bad     string // why the fields are malformed
}

func (c *conn) onHeaders(f *http2.HeadersFrame) error {
	b := &c.inbound.block
	*b = block{id: f.StreamID, end: f.StreamEnded()}
	if f.HasPriority() && f.Priority.StreamDep == f.StreamID {
		b.bad = "the stream depends on itself"
	}
	if err := c.open(b); err != nil {
		return err
	}
	return c.decode(f.HeaderBlockFragment(), f.HeadersEnded())
}

func (c *conn) onContinuation(f *http2.ContinuationFrame) error {
	if c.inbound.block.frames > maxContinuations {
		return frame.Fail(http2.ErrCodeEnhanceYourCalm, "too many CONTINUATION frames")
	}
	return c.decode(f.HeaderBlockFragment(), f.HeadersEnded())
}

// open finds out whose fields a block brings.
func (c *conn) open(b *block) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[b.id]
	switch {
	case b.id%2 == 0:
		return frame.Fail(http2.ErrCodeProtocol, "a client opens streams with odd numbers")
	case s != nil && s.ended:
		b.code = http2.ErrCodeStreamClosed
	case s != nil && s.connects:
		b.code = http2.ErrCodeProtocol // a tunnel carries DATA only (RFC 9113 section 8.5)
	case s != nil && !b.end:
		b.bad = "a trailer does not end its stream"
	case s != nil:
		return nil
	case b.id <= c.last:
		found, reset := c.closed.find(b.id)
		switch {
		case found && reset: // sent before our RST_STREAM had arrived
			b.bad = "its stream is reset"
			return c.charge(frame.CostFrame)
		case found:
			return frame.Fail(http2.ErrCodeStreamClosed, "HEADERS for a closed stream")
		}
		return frame.Fail(http2.ErrCodeProtocol, "a stream's number is lower than one before")
	default:
		if c.last == 0 && c.peer.Asked != nil {
			c.peer.Asked()
		}
		c.last = b.id
		if c.parting.final || len(c.streams) >= c.limit || c.running >= 2*c.limit {
			b.code = http2.ErrCodeRefusedStream
			c.server.stats.refused.Add(1)
			return nil
		}
		b.stream = c.server.acquire(c, b.id)
	}
	return nil
}

// decode unfolds part of a block. Whatever becomes of the fields, all are decoded,
// since those of later blocks refer to them.
func (c *conn) decode(fragment []byte, last bool) error {
	in := &c.inbound
	b := &in.block
	b.open = true
	b.frames++
	begins := b.bytes == 0
	if b.bytes += len(fragment); b.bytes > max(maxBlock, c.server.limits.Load().HeadSize) {
		return frame.Fail(http2.ErrCodeEnhanceYourCalm, "a field block is too large")
	}
	in.Decoder.SetEmitEnabled(!b.large)
	if err := in.Decode(fragment, begins); err != nil {
		return frame.Fail(http2.ErrCodeCompression, err.Error())
	}
	if !last {
		return nil
	}
	if err := in.Decoder.Close(); err != nil {
		return frame.Fail(http2.ErrCodeCompression, err.Error())
	}
	b.open = false
	switch {
	case b.code != 0:
		return http2.StreamError{StreamID: b.id, Code: b.code}
	case b.stream != nil:
		return c.admit(b)
	}
	return c.takeTrailer(b)
}

// field takes one field of the block.
func (c *conn) field(f hpack.HeaderField) {
	b := &c.inbound.block
	l := c.server.limits.Load()
	b.size += int(f.Size())
	if long := l.LineSize > 0 && len(f.Name)+len(f.Value) > l.LineSize; long || b.size > l.HeadSize {
		b.large, b.target = true, long && f.Name == ":path"
		c.inbound.Decoder.SetEmitEnabled(false)
		return
	}
	switch {
	case b.bad != "" || b.code != 0:
	case b.stream != nil:
		b.stream.ex.Request.Size += int64(len(f.Name) + len(f.Value))
		b.bad = b.stream.takeField(f.Name, f.Value)
	case !frame.ValidName(f.Name) || !frame.ValidValue(f.Value) || frame.EndsHere(f.Name, f.Value):
		b.bad = "a trailer field is malformed"
	default:
		b.trailer.Add([]byte(f.Name), []byte(f.Value))
	}
}

// admit begins a request, or refuses it.
func (c *conn) admit(b *block) error {
	s := b.stream
	if b.bad == "" && !b.large {
		b.bad = s.complete(b.end)
	}
	if b.bad != "" {
		s.refuseUnseen(400)
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeProtocol}
	}
	switch {
	case b.large:
		s.ex.Answer(c.server.tooLarge(b.target))
	case s.head.padded:
		s.ex.Answer(400, "400 Bad Request: the value of a field begins or ends with white space\n")
	}
	c.mu.Lock()
	s.ended = b.end
	s.send.Window, s.granted.left = c.out.Initial, streamWindow
	c.streams[s.send.ID] = s
	c.running++
	c.mu.Unlock()
	c.inbound.starting = append(c.inbound.starting, s)
	return nil
}

// takeTrailer ends a request with the fields behind its body.
func (c *conn) takeTrailer(b *block) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[b.id]
	switch {
	case s == nil:
		return nil // it was answered meanwhile
	case b.bad != "" || b.large:
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeProtocol}
	}
	for _, f := range b.trailer.Header.Fields() {
		s.ex.Request.Trailer.Add(f.Name, f.Value)
	}
	return c.endOf(s)
}

// requestHead is what the fields of a request have said so far.
type requestHead struct {
	seen    pseudo
	regular bool // a field that is no pseudo field has come
	scheme  []byte
	host    []byte   // the Host field
	spoken  []byte   // the :protocol of an extended CONNECT
	key     [24]byte // that we have made for its handshake
	length  int64    // Content-Length, or -1
	cookies int
	te      bool // trailers are welcome
	padded  bool // white space is around the value of a field
	expects bool // 100 (Continue), and may still get it; then the connection's lock guards it
	unknown bool // another expectation
}

// pseudo is a set of the pseudo fields.
type pseudo uint8

const (
	method pseudo = 1 << iota
	scheme
	authority
	path
	protocol
)

// takeField takes one field and returns why the request is malformed, if it is.
func (s *stream) takeField(name, value string) (bad string) {
	h := &s.head
	regular := len(name) == 0 || name[0] != ':'
	if !frame.ValidValue(value) {
		if !regular || !frame.ValidValue(strings.Trim(value, " \t")) {
			return "a field's value is malformed"
		}
		// A slip of who wrote the client, who is told (RFC 9113 section 8.2.1). Where the
		// stream is reset, Go's client asks again and again.
		h.padded, h.regular = true, true
		return ""
	}
	if !regular {
		return s.takePseudo(name, value)
	}
	h.regular = true
	if !frame.ValidName(name) {
		return "a field's name is malformed"
	}
	if frame.EndsHere(name, value) {
		return "a field belongs to HTTP/1.1"
	}
	switch name {
	case "host":
		if h.host != nil {
			return "there are two Host fields"
		}
		h.host = s.keep(value)
		return ""
	case "content-length":
		n, ok := frame.ParseLength(value)
		if !ok || h.length >= 0 {
			return "the Content-Length is malformed"
		}
		h.length = n
		return ""
	case "te":
		h.te = true
		return ""
	case "expect":
		h.expects = exchange.EqualFold([]byte(value), "100-continue")
		h.unknown = !h.expects
		return ""
	case "cookie":
		h.cookies++
	}
	s.ex.Request.Names |= exchange.SpellingOf([]byte(name))
	s.ex.Request.Header.Add(name, value)
	return ""
}

func (s *stream) takePseudo(name, value string) (bad string) {
	h, r := &s.head, &s.ex.Request
	if h.regular {
		return "a pseudo field stands behind others"
	}
	var which pseudo
	switch name {
	case ":method":
		which, r.Method = method, s.keep(value)
	case ":scheme":
		which, h.scheme = scheme, s.keep(value)
	case ":authority":
		which, r.Host = authority, s.keep(value)
	case ":path":
		which, r.Target = path, s.keep(value)
	case ":protocol":
		which, h.spoken = protocol, s.keep(value)
	default:
		return "a pseudo field is unknown"
	}
	if h.seen&which != 0 {
		return "a pseudo field comes twice"
	}
	h.seen |= which
	return ""
}

// keep copies what must outlive the block.
func (s *stream) keep(value string) []byte {
	start := len(s.text)
	s.text = append(s.text, value...)
	return s.text[start:len(s.text):len(s.text)]
}

// complete checks the fields as a whole, and makes them the exchange's.
func (s *stream) complete(ends bool) (bad string) {
	h, r := &s.head, &s.ex.Request
	switch {
	case h.seen&method == 0 || len(r.Method) == 0 || !exchange.IsToken(r.Method):
		return "there is no method"
	case h.seen&protocol != 0 && (string(r.Method) != "CONNECT" || h.length >= 0):
		return "a protocol belongs to CONNECT, which has no length"
	case string(r.Method) == "CONNECT" && h.seen&protocol == 0:
		if h.seen&(scheme|path) != 0 || h.seen&authority == 0 {
			return "CONNECT has an authority, and no scheme and path"
		}
		r.Target = []byte("/")
	case h.seen&scheme == 0 || h.seen&path == 0 || !validTarget(r.Target):
		return "there is no scheme, or no path"
	}
	if h.host != nil {
		if h.seen&authority != 0 && !exchange.EqualFold(h.host, string(r.Host)) {
			return "Host differs from :authority"
		}
		r.Host = h.host
	}
	if ends && h.length > 0 {
		return "there is a Content-Length and no content"
	}
	if h.cookies > 1 {
		r.Header.SetBytes("cookie", r.Header.Cookies())
	}
	hop := r.Header.StripHop()
	r.Trailer.Announced, r.TakesTrailers = hop.Announced, h.te
	switch {
	case h.seen&protocol != 0:
		s.connect()
	case !ends && h.length != 0:
		r.Body, r.Length = (*requestBody)(s), h.length
	}
	return ""
}

// validTarget reports whether b may stand in a request line: whatever could end it
// there would let the backend see another request.
func validTarget(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}
