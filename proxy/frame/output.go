package frame

import (
	"iter"
	"sync"

	"golang.org/x/net/http2"
)

const (
	// batch is how much is put together for one write.
	batch = 64 << 10
	// MaxPending is more than streams put there: the rest are replies to a peer that
	// provokes them and does not read them.
	MaxPending = 4 * batch
	// MaxWindow is the largest window (RFC 9113 section 6.9.1).
	MaxWindow = 1<<31 - 1
	// firstWindow is the one that every connection and every stream begins with.
	firstWindow = 65535
)

// Buffers are where output is put together. The zero value is ready.
type Buffers struct{ pool sync.Pool }

// Get returns an empty buffer with room for one write.
func (p *Buffers) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, batch+2*Size)
}

// Put takes a buffer back, unless it has become too large.
func (p *Buffers) Put(b []byte) {
	if b != nil && cap(b) <= MaxPending {
		p.pool.Put(&b)
	}
}

// Output is what a connection has to send. Control frames are put into Pending as
// they arise. What streams have to send waits with them; those whose windows are
// open stand in a queue and put one frame each into Pending, in turn, while there is
// room. So nothing is copied before it can be written, and who has much to send does
// not keep others waiting.
type Output struct {
	Pending []byte // not yet written; from the buffers, nil if nothing is
	Window  int64  // of the connection: what the peer lets us send
	Initial int64  // the window of new streams
	Resized bool   // the next field block says that our table is empty
	Sent    int    // DATA frames so far

	unpaid      int64 // what was sent of bodies, twice, without what was granted since
	buffers     *Buffers
	first, last *Sender
}

// NewOutput returns that of a connection which has just begun.
func NewOutput(buffers *Buffers) Output {
	return Output{Window: firstWindow, Initial: firstWindow, buffers: buffers}
}

// Part is a part of a message: a field block, data, another field block, each of
// which may be missing. All are borrowed while the part is due.
type Part struct {
	Head    []byte // the block that begins the message
	Data    []byte
	Trailer []byte // the block behind the data; only the last part has one
	Last    bool   // it ends the message
	Apart   bool   // without data, an empty DATA frame ends it and not the head
}

// Sender is a stream's side of Output. Its owner sets ID and Window.
type Sender struct {
	ID     uint32
	Window int64 // what the peer lets this stream send
	Due    bool  // a part is to be sent
	moved  int64 // how much of it was, since somebody looked
	part   Part
	queued bool
	next   *Sender
}

// leastPace is how many bytes of a part make progress. A peer that grants less, byte by
// byte, would have what it asks for held in memory for as long as it likes. It is little:
// a hundred streams over the slowest of phones share 14 kbit/s.
const leastPace = 1 << 10

// Stuck reports whether next to nothing of what is due was sent since it was asked last.
func (s *Sender) Stuck() bool {
	moved := s.moved
	s.moved = 0
	return s.Due && moved < leastPace
}

// Last reports whether the part ends the message.
func (s *Sender) Last() bool { return s.part.Last }

// Send makes p due. Nothing else may be.
func (o *Output) Send(s *Sender, p Part) {
	s.part, s.Due = p, true
	o.Resume(s)
}

// Resume puts a stream that has something to send, and may, at the end of the queue.
// It is called whenever a window has grown, see Widen, WidenOne and Resize.
func (o *Output) Resume(s *Sender) {
	if !s.Due || s.queued || s.part.Head == nil && len(s.part.Data) > 0 && (s.Window <= 0 || o.Window <= 0) {
		return
	}
	s.queued, s.next = true, nil
	if o.last == nil {
		o.first = s
	} else {
		o.last.next = s
	}
	o.last = s
}

// Repays reports whether a WINDOW_UPDATE, of the connection or of a stream that may be
// closed by now, is worth its frame and gives back what was used of a window. All that is
// sent uses two of them.
func (o *Output) Repays(increment uint32) bool {
	if increment < WorthUpdate || o.unpaid <= 0 {
		return false
	}
	o.unpaid = max(o.unpaid-int64(increment), 0)
	return true
}

// Widen adds to the connection's window, for which streams may have waited.
func (o *Output) Widen(increment uint32, streams iter.Seq[*Sender]) error {
	waited := o.Window <= 0
	if o.Window += int64(increment); o.Window > MaxWindow {
		return Fail(http2.ErrCodeFlowControl, "the connection's window is too large")
	}
	if waited {
		for s := range streams {
			o.Resume(s)
		}
	}
	return nil
}

// WidenOne adds to the window of one stream. It reports false, and the stream is to be
// reset, if that becomes too large.
func (o *Output) WidenOne(s *Sender, increment uint32) bool {
	if s.Window += int64(increment); s.Window > MaxWindow {
		return false
	}
	o.Resume(s)
	return true
}

// Resize changes the window that streams begin with, and by as much what each of those
// that have begun may be sent (RFC 9113 section 6.9.2), which may leave less than nothing.
func (o *Output) Resize(initial uint32, streams iter.Seq[*Sender]) error {
	change := int64(initial) - o.Initial
	o.Initial = int64(initial)
	for s := range streams {
		if s.Window += change; s.Window > MaxWindow {
			return Fail(http2.ErrCodeFlowControl, "a window is too large")
		}
		o.Resume(s)
	}
	return nil
}

// Forget takes a stream out that will send nothing more.
func (o *Output) Forget(s *Sender) {
	s.Due, s.part = false, Part{}
	if !s.queued {
		return
	}
	var before *Sender
	for at := o.first; at != s; at = at.next {
		before = at
	}
	if before == nil {
		o.first = s.next
	} else {
		before.next = s.next
	}
	if o.last == s {
		o.last = before
	}
	s.queued, s.next = false, nil
}

// Next lets streams put their frames into Pending while there is room. It returns
// the next one whose part is on its way, or nil when all has been done that can be.
func (o *Output) Next() *Sender {
	for o.first != nil && len(o.Pending) < batch {
		s := o.first
		if o.first = s.next; o.first == nil {
			o.last = nil
		}
		s.queued, s.next = false, nil
		if s.Due && o.emit(s) {
			return s
		}
	}
	return nil
}

// emit sends one frame of a stream, with the head if that is due, and puts the
// stream back into the queue if there is more. It reports whether there is not.
func (o *Output) emit(s *Sender) (done bool) {
	p := &s.part
	empty := p.Last && p.Trailer == nil && len(p.Data) == 0
	bare := p.Head != nil && !p.Apart
	if p.Head != nil {
		o.block(s.ID, p.Head, empty && bare)
		s.moved += int64(len(p.Head))
		p.Head = nil
	}
	if empty && !bare {
		o.Pending = AppendHeader(o.Buffer(), 0, http2.FrameData, http2.FlagDataEndStream, s.ID)
	}
	if n := min(int64(len(p.Data)), Size, s.Window, o.Window); n > 0 {
		var flags http2.Flags
		if p.Last && p.Trailer == nil && int(n) == len(p.Data) {
			flags = http2.FlagDataEndStream
		}
		o.Pending = append(AppendHeader(o.Buffer(), int(n), http2.FrameData, flags, s.ID), p.Data[:n]...)
		p.Data = p.Data[n:]
		s.Window -= n
		o.Window -= n
		s.moved += n
		o.Sent++
		o.unpaid += 2 * n
	}
	if len(p.Data) > 0 {
		o.Resume(s) // unless it has to wait for a WINDOW_UPDATE
		return false
	}
	if p.Trailer != nil {
		o.block(s.ID, p.Trailer, true)
	}
	s.Due = false
	return true
}

// Block sends a field block of its own that does not end its stream.
func (o *Output) Block(id uint32, block []byte) { o.block(id, block, false) }

func (o *Output) block(id uint32, block []byte, end bool) {
	var flags http2.Flags
	if end {
		flags = http2.FlagHeadersEndStream
	}
	if o.Resized { // RFC 7541 section 4.2: what was changed is answered
		block = append([]byte{tableEmpty}, block...)
		o.Resized = false
	}
	o.Pending = appendBlock(o.Buffer(), block, id, flags)
}

// Buffer returns Pending, to be appended to.
func (o *Output) Buffer() []byte {
	if o.Pending == nil {
		o.Pending = o.buffers.Get()
	}
	return o.Pending
}

// Take returns what is pending, to be written and given back to the buffers.
func (o *Output) Take() []byte {
	b := o.Pending
	o.Pending = nil
	return b
}
