package upstream

import (
	"errors"
	"io"
	"time"

	"quayside.io/proxy/exchange"
)

// ErrTruncated says that the upstream ended before its response did. A front
// end that meets it breaks the client's connection, so that what was sent does
// not look complete.
var ErrTruncated = errors.New("the upstream closed the connection before the end of its response")

type framing uint8

const (
	whole    framing = iota // nothing more to read from the connection
	byLength                // body.left bytes
	byChunks
	byClose
	byStream // as t.stream says
)

// body is the state of a response body being read.
type body struct {
	left   int64
	chunks chunks
	at     int    // where reads go in the buffer: behind the head, which is borrowed
	data   []byte // decoded, not yet delivered
	err    error  // how it ended
}

// minBodyRoom is the least space worth a read.
const minBodyRoom = 4 << 10

// settle turns a final response head into ex.Response and decides how its body
// ends.
func (t *transaction) settle(hd head) error {
	r, unlooked := &t.ex.Response, t.conn.quiet
	hop := r.Header.StripHop()
	t.health().Answered()
	if err := t.checkUpgrade(hd.status, hop); err != nil {
		return err
	}
	t.targets.set.TellClient(&t.session, t.at, &t.ex.Request, &r.Header, t.since)
	if hd.status == 101 {
		return t.switchProtocols(hop)
	}
	r.Status, r.Body, r.Length = hd.status, t, hd.length
	t.keep = (hd.minor == 1 && !hop.Close || hd.minor == 0 && hop.KeepAlive) && !t.rules.HTTP10
	if u := t.upload; u != nil {
		if !u.finished() {
			// The upstream answers before it has read everything, or does both at
			// once. Either way the client's connection is in the middle of a body
			// when the response ends, unless the body was kept.
			r.Close, t.keep = t.kept == nil, false
		} else if t.conn.unread() {
			t.keep = false
		}
	}
	switch {
	case string(t.ex.Request.Method) == "HEAD" || hd.status == 204 || hd.status == 304:
		t.complete()
	case hd.chunked:
		t.framing, r.Length = byChunks, unknown
		r.Trailer.Announced = hop.Announced
		t.decode()
		if t.framing == whole {
			r.Length = int64(len(t.body.data))
		}
	case hd.length != unknown:
		t.framing, t.body.left = byLength, hd.length
		t.decode()
	default:
		t.framing, t.keep = byClose, false
		t.decode()
	}
	if unlooked && t.framing == whole && t.start < t.end {
		return t.astray(errLeftover)
	}
	t.body.at = t.end
	if t.framing != whole && len(*t.buf)-t.body.at < minBodyRoom {
		t.body.at = 0
		t.detachHead()
	}
	return t.body.err
}

// detachHead gives the body a buffer of its own; the head's goes to the garbage
// collector once nobody borrows from it.
func (t *transaction) detachHead() {
	larger := make([]byte, bufferSize+1)
	t.buf = &larger
}

// decode turns the bytes in [start:end) of the buffer into body.data, and
// completes the transaction when the body's last byte is among them.
func (t *transaction) decode() {
	b := (*t.buf)[t.start:t.end]
	switch t.framing {
	case byLength:
		n := int(min(t.body.left, int64(len(b))))
		t.body.data = b[:n]
		t.start += n
		if t.body.left -= int64(n); t.body.left == 0 {
			t.complete()
		}
	case byChunks:
		t.decodeChunks(b)
	case byClose:
		t.body.data = b
		t.start = t.end
	}
}

// decodeChunks moves the data together, over the framing between it.
func (t *transaction) decodeChunks(b []byte) {
	n := 0
	for at := 0; at < len(b) && !t.body.chunks.done(); {
		data, used, err := t.body.chunks.next(b[at:])
		if err != nil {
			t.body.err = t.bad(err)
			break
		}
		n += copy(b[n:], data)
		at += used
		t.start += used
	}
	t.body.data = b[:n]
	if t.body.chunks.done() {
		t.body.chunks.fields(&t.ex.Response.Trailer)
		t.complete()
	}
}

// complete gives the connection back: the response is in memory or needs none
// of it. Bytes beyond the response were not asked for and end the connection.
func (t *transaction) complete() {
	t.framing = whole
	t.uncount()
	c := t.conn
	t.conn = nil
	if t.keep && t.start == t.end {
		c.endpoint.put(c, t.since, t.engine.keeping.Load())
	} else {
		c.endpoint.discard(c)
	}
}

// Whole implements exchange.Whole.
func (t *transaction) Whole() ([]byte, bool) {
	return t.body.data, t.framing == whole && t.body.err == nil
}

var _ exchange.Whole = (*transaction)(nil)

// next returns body bytes as they come, in pieces that are valid until the next
// call.
func (t *transaction) next() ([]byte, error) {
	for {
		if b := t.body.data; len(b) > 0 {
			t.body.data = nil
			return b, nil
		}
		switch {
		case t.body.err != nil:
			return nil, t.body.err
		case t.framing == whole:
			return nil, io.EOF
		}
		if t.framing == byStream {
			t.body.err = t.readStream()
		} else {
			t.start, t.end = t.body.at, t.body.at
			if t.body.err = t.read(); t.body.err == nil {
				t.decode()
			}
		}
		if t.body.err == nil {
			t.received()
		}
		t.brokeOff()
	}
}

// read waits for more of the body.
func (t *transaction) read() error {
	t.since = time.Now()
	if err := t.patience(t.since, t.rules.ReadTimeout); err != nil {
		return err
	}
	for {
		n, err := t.conn.Read(t.room())
		switch {
		case n > 0:
			t.end += n
			now := time.Now()
			t.ex.Upstream.Waited += now.Sub(t.since)
			t.since = now
			return nil
		case err == io.EOF && t.framing == byClose:
			return io.EOF
		case isTimeout(err):
			if err := t.stillWaiting(); err != nil {
				return err
			}
		default:
			t.backend.stats.count(connectionLost)
			return ErrTruncated
		}
	}
}

// Read implements io.Reader.
func (t *transaction) Read(p []byte) (int, error) {
	b, err := t.next()
	if err != nil {
		return 0, err
	}
	n := copy(p, b)
	t.body.data = b[n:]
	return n, nil
}

// WriteTo implements io.WriterTo. It flushes w before each wait, so that an
// event stream arrives event by event.
func (t *transaction) WriteTo(w io.Writer) (int64, error) {
	flusher, _ := w.(interface{ Flush() error })
	var written int64
	for {
		b, err := t.next()
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(b)
		written += int64(n)
		if err != nil {
			return written, err
		}
		if flusher != nil && t.framing != whole {
			if err := flusher.Flush(); err != nil {
				return written, err
			}
		}
	}
}

// Close ends the transaction. A connection with part of the response still to
// come is of no use to anybody else.
func (t *transaction) Close() error {
	t.release()
	return nil
}
