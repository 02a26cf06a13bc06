package serve

import (
	"errors"
	"io"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
)

// prefetched is how much of a request body fasthttp reads before the handler
// runs. Bodies of a known length no larger are in memory then, and read off the
// connection whatever becomes of the request.
const prefetched = 8 << 10

// requestBody is the body of a request as the exchange sees it. One goroutine
// at a time reads it.
type requestBody struct {
	source  io.Reader
	client  *client
	length  int64
	ended   bool
	read    int64
	whole   []byte // a body in memory, once it was asked for
	header  *fasthttp.RequestHeader
	fields  int // of header, before the trailer is read into it
	trailer *exchange.Trailer
}

// readBody sets the body, which is not there yet where the client waits to be
// asked for it.
func (rc *requestContext) readBody(length int) {
	r := &rc.ex.Request
	if length == 0 || length < -1 || !rc.ctx.Request.IsBodyStream() && !rc.ctx.Request.MayContinue() {
		return
	}
	b := &rc.body
	b.client, b.length = rc.client, int64(length)
	if rc.ctx.Request.IsBodyStream() {
		b.source = rc.ctx.RequestBodyStream()
	}
	if length < 0 {
		b.header, b.trailer = &rc.ctx.Request.Header, &r.Trailer
		b.fields = fieldsOf(b.header)
		r.Trailer.Announced = rc.hop.Announced
	}
	r.Body, r.Length = b, int64(length)
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	if !b.inMemory() {
		if err := b.client.keepReading(); err != nil {
			return 0, err
		}
	}
	n, err := b.source.Read(p)
	b.read += int64(n)
	switch {
	case err != io.EOF || b.ended:
	case b.length < 0 && b.client.in.ended:
		// fasthttp calls it the end of the body when the client hangs up where
		// the size of a chunk or the trailer is due. It is half a body: whoever
		// had wanted no more would not have met the end of the connection.
		return n, io.ErrUnexpectedEOF
	default:
		b.ended = true
		if !b.readTrailer() {
			return n, errTrailer
		}
	}
	return n, err
}

// errTrailer says that what came behind a body is no trailer.
var errTrailer = errors.New("a field behind the request body is malformed")

// Close wakes a Read that waits for the client, and ends all reading.
func (b *requestBody) Close() error {
	b.client.stopReading()
	return nil
}

// Whole implements exchange.Whole.
func (b *requestBody) Whole() ([]byte, bool) {
	if !b.inMemory() {
		return nil, false
	}
	if !b.ended {
		b.whole = append(b.whole[:0], make([]byte, b.length)...)
		if _, err := io.ReadFull(b.source, b.whole); err != nil {
			return nil, false
		}
		b.ended, b.read = true, b.length
	}
	return b.whole, true
}

var _ exchange.Whole = (*requestBody)(nil)

func (b *requestBody) inMemory() bool {
	return b.source != nil && b.length >= 0 && b.length <= prefetched
}

// readOff reports whether nothing of the body is left on the connection. It is
// not to be asked while someone else may be reading.
func (b *requestBody) readOff() bool { return b.ended || b.inMemory() }

// readTrailer takes the fields that fasthttp has appended to those of the head.
// They are the last, but for the Connection field that it makes up. It reports false for
// a name that is none: that is read in more than one way.
func (b *requestBody) readTrailer() bool {
	if b.trailer == nil || fieldsOf(b.header) == b.fields {
		return true
	}
	at := 0
	for name, value := range b.header.All() {
		if at++; at <= b.fields {
			continue
		}
		if !exchange.IsToken(name) || !exchange.IsFieldValue(value) {
			return false
		}
		b.trailer.Add(name, value)
	}
	return true
}

// fieldsOf counts without what fasthttp appends to them.
func fieldsOf(h *fasthttp.RequestHeader) int {
	n := h.Len()
	if h.ConnectionClose() {
		n--
	}
	return n
}
