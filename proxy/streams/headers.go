package streams

import (
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

const (
	// maxBlock is the largest field block in its compressed form, and the largest
	// name or value in it. A larger one ends the connection; one that unfolds to more
	// than Options.HeadSize, its stream.
	maxBlock = 512 << 10
	// maxContinuations is how many frames may follow a HEADERS frame.
	maxContinuations = 32
	// maxInformational bounds the 1xx responses before the one that counts.
	maxInformational = 8
)

// Head is what begins a response.
type Head struct {
	Status int
	Length int64 // the Content-Length, or -1
	Tunnel bool  // the stream is a WebSocket from now on
}

// block is a field block that arrives, in one frame or more.
type block struct {
	id       uint32
	end      bool // the stream ends with it
	stream   *Stream
	trailing bool // it is a trailer
	head     Head
	header   exchange.Header
	trailer  exchange.Trailer
	regular  bool // a field that is no pseudo field has come
	frames   int
	bytes    int    // compressed
	size     int    // as the fields count against the limit
	bad      string // why the fields are malformed
}

// onHeaders begins a block. The framer sees to it that all its frames follow.
func (c *Conn) onHeaders(f *http2.HeadersFrame) error {
	b := &c.inbound.block
	*b = block{id: f.StreamID, end: f.StreamEnded(), stream: c.streams[f.StreamID], head: Head{Length: -1}}
	switch s := b.stream; {
	case s == nil && c.isIdle(b.id):
		return frame.Fail(http2.ErrCodeProtocol, "HEADERS for a stream that was never opened")
	case s == nil:
		if err := c.charge(frame.CostFrame); err != nil { // sent before our RST_STREAM had arrived
			return err
		}
	case s.ended:
		b.bad = "there are HEADERS behind its end"
	case s.headed:
		if b.trailing = true; !b.end {
			b.bad = "its trailer does not end it"
		}
	}
	return c.decode(f.HeaderBlockFragment(), f.HeadersEnded())
}

func (c *Conn) onContinuation(f *http2.ContinuationFrame) error {
	if c.inbound.block.frames > maxContinuations {
		return frame.Fail(http2.ErrCodeEnhanceYourCalm, "too many CONTINUATION frames")
	}
	return c.decode(f.HeaderBlockFragment(), f.HeadersEnded())
}

// decode unfolds part of a block. Whatever becomes of the fields, all are decoded,
// since those of later blocks refer to them.
func (c *Conn) decode(fragment []byte, last bool) error {
	in := &c.inbound
	b := &in.block
	b.frames++
	begins := b.bytes == 0
	if b.bytes += len(fragment); b.bytes > maxBlock {
		return frame.Fail(http2.ErrCodeEnhanceYourCalm, "a field block is too large")
	}
	in.Decoder.SetEmitEnabled(b.bad == "" && b.stream != nil)
	if err := in.Decode(fragment, begins); err != nil {
		return frame.Fail(http2.ErrCodeCompression, err.Error())
	}
	if !last {
		return nil
	}
	if err := in.Decoder.Close(); err != nil {
		return frame.Fail(http2.ErrCodeCompression, err.Error())
	}
	s := b.stream
	b.stream = nil
	switch {
	case s == nil || s.err != nil:
		return nil
	case b.bad != "":
		return c.refuse(b.id, http2.ErrCodeProtocol, b.bad)
	case b.trailing:
		s.trailer = b.trailer
		return c.endOf(s)
	}
	return c.begin(s, b)
}

// begin takes the head of a response.
func (c *Conn) begin(s *Stream, b *block) error {
	switch status := b.head.Status; {
	case status == 0:
		return c.refuse(b.id, http2.ErrCodeProtocol, "it has no status")
	case status == 101:
		return c.refuse(b.id, http2.ErrCodeProtocol, "HTTP/2 knows no 101")
	case status < 200:
		if s.informed++; b.end || s.informed > maxInformational {
			return c.refuse(b.id, http2.ErrCodeProtocol, "there are too many informational responses, or nothing behind one")
		}
		if s.moved = c.heard; status == 103 {
			s.hints = append(s.hints, b.header)
			signal(s.arrived)
		}
		return nil
	case s.connect && status < 300: // has no length, says RFC 9110 section 9.3.6
		b.head.Length, b.head.Tunnel = -1, true
	case status == 204 || status == 304:
		s.bodiless = true
	}
	s.headed, s.head, s.header = true, b.head, b.header
	s.moved = c.heard
	if b.end {
		return c.endOf(s)
	}
	if !s.bodiless {
		c.grantStream(s, s.widen())
	}
	signal(s.arrived)
	return nil
}

// field takes one field of the block. The lock is held.
func (c *Conn) field(f hpack.HeaderField) {
	b := &c.inbound.block
	if b.size += int(f.Size()); b.size > c.client.options.HeadSize {
		b.bad = "its head or trailer is too long"
	}
	if b.bad == "" {
		b.bad = b.take(f.Name, f.Value)
	}
	if b.bad != "" {
		c.inbound.Decoder.SetEmitEnabled(false)
	}
}

// take takes one field and returns why the response is malformed, if it is.
func (b *block) take(name, value string) (bad string) {
	if name == ":status" {
		status, ok := frame.ParseLength(value)
		if b.trailing || b.regular || b.head.Status != 0 || !ok || len(value) != 3 || status < 100 {
			return "its status is malformed"
		}
		b.head.Status = int(status)
		return ""
	}
	b.regular = true
	switch {
	case !frame.ValidName(name) || !frame.ValidValue(value):
		return "a field is malformed"
	case frame.EndsHere(name, value):
		return "a field belongs to HTTP/1.1"
	case b.trailing:
		b.trailer.Add([]byte(name), []byte(value))
	case name == "content-length":
		n, ok := frame.ParseLength(value)
		if !ok || b.head.Length >= 0 {
			return "the Content-Length is malformed"
		}
		b.head.Length = n
	default:
		b.header.Add(name, value)
	}
	return ""
}
