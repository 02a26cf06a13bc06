package dispatch

import (
	"cmp"
	"errors"
	"io"
	"sync/atomic"

	"quayside.io/proxy/exchange"
)

const (
	// gatherMemory is how much of a body is kept in memory where nobody says
	// otherwise, and maxGatherMemory whatever anybody says. Where there are no files,
	// the second is as much as is kept at all, and a longer body is streamed from
	// there on.
	gatherMemory    = 64 << 10
	maxGatherMemory = 1 << 20
	// maxGathering bounds the memory of all bodies that are kept so.
	maxGathering = 64 << 20
	// copySize is the least piece that goes to a file, unless it is the last.
	copySize = 32 << 10
)

// Files keep of bodies what is too long for memory.
type Files struct {
	// Create returns an empty file. What it and the file's methods fail with,
	// exchange.BodyFault understands. Nil: there are no files.
	Create func() (File, error)
	// Largest is the length of a body above which it is streamed instead.
	Largest int64
}

// File is one of them.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// gathered is a body that has been read before anybody is asked: from its beginning
// as far as may be, mostly all of it.
type gathered struct {
	io.ReadCloser // what has not been read yet
	files         *Files
	kept          []byte // while there is no file
	file          File
	size          int64         // of what has been read,
	at            int64         // and how much of it has been handed on
	whole         bool          // there is no more
	trailed       bool          // with fields behind it, which only a stream can have
	total         *atomic.Int64 // bytes in memory, of all bodies
	counted       int64         // our part of it
}

// gather reads a request's body before anybody is asked, so that a slow client costs
// the upstream nothing. It reports whether the request goes on.
func (d *Dispatcher) gather(ex *exchange.Exchange) bool {
	r := &ex.Request
	if f := r.Forwarding; f.HTTP10 && (r.Length >= 0 || r.Body == nil) && !f.Gather {
		return true
	}
	if r.Body == nil || d.files.Create != nil && r.Length > d.files.Largest {
		return true
	}
	if w, ok := r.Body.(exchange.Whole); ok {
		if _, whole := w.Whole(); whole {
			return true
		}
	}
	g := d.gathered(ex)
	return g.settle(ex, g.read(r.Forwarding.GatherMemory)) && g.measured(ex)
}

// measured reports whether a body may go to a backend that is asked over HTTP/1.0: if
// its length is known. Fields behind it are left out there.
func (g *gathered) measured(ex *exchange.Exchange) bool {
	r := &ex.Request
	if !r.Forwarding.HTTP10 || r.Length >= 0 {
		return true
	}
	if !g.whole {
		ex.Answer(411, "411 Length Required: the backend is asked over HTTP/1.0, and the body is too long to be measured first\n")
		ex.Response.Close = true
		return false
	}
	r.Length, g.trailed = g.size, false
	return true
}

// show reads the beginning of a body, up to a limit of bytes, into memory, which may
// be full before. whole says that this is all of it, ok that the request goes on.
func (d *Dispatcher) show(ex *exchange.Exchange, limit int) (beginning []byte, whole, ok bool) {
	if w, is := ex.Request.Body.(exchange.Whole); is {
		if b, all := w.Whole(); all {
			return b[:min(len(b), limit)], len(b) <= limit, true
		}
	}
	g := d.gathered(ex)
	ok = g.settle(ex, g.fill(int64(limit)))
	return g.kept, g.whole, ok
}

// gathered makes the body of ex one that is gathered.
func (d *Dispatcher) gathered(ex *exchange.Exchange) *gathered {
	g, ok := ex.Request.Body.(*gathered)
	if !ok {
		g = &gathered{ReadCloser: ex.Request.Body, files: &d.files, total: &d.gathering}
		ex.Request.Body = g
	}
	return g
}

// settle answers if the body could not be read. It reports whether the request goes on.
func (g *gathered) settle(ex *exchange.Exchange, err error) bool {
	if err != nil {
		ex.Answer(exchange.BodyFault(err))
		ex.Response.Close = true
		return false
	}
	r := &ex.Request
	// Until the body has ended, its trailer belongs to who reads it from the client.
	g.trailed = r.Trailer.Announced != nil || g.whole && len(r.Trailer.Header.Fields()) > 0
	if g.whole && !g.trailed {
		r.Length = g.size
	}
	return true
}

// read reads until the body has ended, or what may be kept has.
func (g *gathered) read(memory int64) error {
	limit := int64(maxGatherMemory)
	if g.files.Create != nil {
		limit = min(cmp.Or(memory, gatherMemory), limit)
	}
	if err := g.fill(limit); err != nil || g.whole || g.files.Create == nil {
		return err
	}
	return g.spill()
}

// fill reads into memory, up to a limit of bytes.
func (g *gathered) fill(limit int64) error {
	for g.size < limit {
		if len(g.kept) == cap(g.kept) {
			g.kept = append(g.kept, make([]byte, max(4<<10, len(g.kept)))...)[:len(g.kept)]
		}
		n, err := g.ReadCloser.Read(g.kept[len(g.kept):min(int64(cap(g.kept)), limit)])
		g.kept = g.kept[:len(g.kept)+n]
		g.size += int64(n)
		g.counted += int64(n)
		full := g.total.Add(int64(n)) > maxGathering
		if g.ended(err) || err != nil {
			return g.fault(err)
		}
		if full {
			return nil
		}
	}
	return nil
}

// spill takes what is in memory to a file, and the rest of the body behind it.
func (g *gathered) spill() (err error) {
	if g.file, err = g.files.Create(); err != nil {
		return err
	}
	if _, err = g.file.Write(g.kept); err != nil {
		return err
	}
	b := g.kept[:cap(g.kept)]
	if len(b) < copySize {
		b = make([]byte, copySize)
	}
	g.kept = nil
	for !g.whole && g.size < g.files.Largest {
		n, err := readFull(g.ReadCloser, b[:min(int64(len(b)), g.files.Largest-g.size)])
		g.size += int64(n)
		if _, err := g.file.Write(b[:n]); err != nil {
			return err
		}
		if !g.ended(err) && err != nil {
			return err
		}
	}
	g.total.Add(-g.counted)
	g.counted = 0
	return nil
}

// readFull reads until b is full or reading ends, whose error it returns.
func readFull(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}

// ended notes the end of the body, if err is that.
func (g *gathered) ended(err error) bool {
	g.whole = g.whole || errors.Is(err, io.EOF)
	return g.whole
}

// fault is err, unless that was only the end.
func (g *gathered) fault(err error) error {
	if g.whole {
		return nil
	}
	return err
}

// Read implements io.Reader.
func (g *gathered) Read(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case g.at < g.size && g.file != nil:
		n, err := g.file.ReadAt(p[:min(int64(len(p)), g.size-g.at)], g.at)
		g.at += int64(n)
		if n == 0 && err != nil {
			return 0, errors.Join(exchange.ErrStorage, err)
		}
		return n, nil
	case g.at < g.size:
		n := copy(p, g.kept[g.at:])
		g.at += int64(n)
		return n, nil
	case g.whole:
		return 0, io.EOF
	}
	return g.ReadCloser.Read(p)
}

// Close implements io.Closer. What is whole needs nobody any more: a try may end, and
// another begin.
func (g *gathered) Close() error {
	if g.whole {
		return nil
	}
	return g.ReadCloser.Close()
}

// Whole implements exchange.Whole.
func (g *gathered) Whole() ([]byte, bool) {
	return g.kept, g.whole && !g.trailed && g.file == nil
}

// Rewind implements exchange.Rewinder.
func (g *gathered) Rewind() bool {
	if g.whole {
		g.at = 0
	}
	return g.whole
}

// release gives back what gather took, and the body that it found.
func release(ex *exchange.Exchange) {
	if g, ok := ex.Request.Body.(*gathered); ok {
		g.total.Add(-g.counted)
		if g.file != nil {
			g.file.Close()
		}
		ex.Request.Body = g.ReadCloser
	}
}

var (
	_ exchange.Whole    = (*gathered)(nil)
	_ exchange.Rewinder = (*gathered)(nil)
)
