package coding

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
)

// The greatest levels; the least are 1 and 0.
const (
	MaxGzip   = gzip.BestCompression
	MaxBrotli = brotli.BestCompression
)

const (
	// pieceSize is how much is read of a body at once.
	pieceSize = 16 << 10
	// keptSize is the largest buffer of encoded bytes that is kept for another body.
	keptSize = 64 << 10
	// brotliWindow is the logarithm of how far brotli looks back. Its memory goes
	// with it, and few responses are larger.
	brotliWindow = 18
)

// atOnce is how many bodies are encoded at the same time. An encoder holds up to
// 1 MiB, and a client that reads slowly keeps it for long.
const atOnce = 256

// Encoders are kept for the next body. The zero value is ready.
type Encoders struct {
	busy   atomic.Int64
	gzip   [MaxGzip + 1]sync.Pool
	brotli [MaxBrotli + 1]sync.Pool
}

// whole is a body that may be in memory, as package exchange has it.
type whole interface{ Whole() ([]byte, bool) }

// An encoder is that of package gzip or brotli.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// body is a body while it is encoded.
type body struct {
	from    io.ReadCloser
	encoder encoder
	pool    *sync.Pool
	busy    *atomic.Int64
	piece   []byte
	out     []byte // encoded
	at      int    // how much of out has been read
	err     error  // what comes behind out
}

// Encode returns what from becomes, which it closes. Level is 1 to MaxGzip or 0 to
// MaxBrotli. If from is in memory, so is the result (its method Whole says so). It returns nil,
// and leaves from alone, while atOnce others are encoded.
func (e *Encoders) Encode(c Coding, level int, from io.ReadCloser) io.ReadCloser {
	if e.busy.Add(1) > atOnce {
		e.busy.Add(-1)
		return nil
	}
	pool := &e.gzip[min(max(level, 1), MaxGzip)]
	if c == Brotli {
		pool = &e.brotli[min(max(level, 0), MaxBrotli)]
	}
	b, _ := pool.Get().(*body)
	if b == nil {
		b = &body{pool: pool, busy: &e.busy, encoder: newEncoder(c, level), piece: make([]byte, pieceSize)}
	}
	b.from, b.out, b.at, b.err = from, b.out[:0], 0, nil
	b.encoder.Reset((*sink)(b))
	if w, ok := from.(whole); ok {
		if text, all := w.Whole(); all {
			b.encoder.Write(text) // into memory: it cannot fail
			b.finish(io.EOF)
		}
	}
	return &reading{b}
}

func newEncoder(c Coding, level int) encoder {
	if c == Brotli {
		return brotli.NewWriterOptions(io.Discard, brotli.WriterOptions{Quality: min(max(level, 0), MaxBrotli), LGWin: brotliWindow})
	}
	w, _ := gzip.NewWriterLevel(io.Discard, min(max(level, 1), MaxGzip)) // fails for other levels only
	return w
}

// sink is where the encoder writes.
type sink body

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	return len(p), nil
}

// finish ends the encoded body, well with io.EOF.
func (b *body) finish(err error) {
	if err == io.EOF {
		b.encoder.Close()
	}
	b.err = err
}

// fill reads a piece, so that there is something in out, or an end.
func (b *body) fill() {
	b.out, b.at = b.out[:0], 0
	n, err := b.from.Read(b.piece)
	if n > 0 {
		b.encoder.Write(b.piece[:n])
	}
	switch {
	case err != nil:
		b.finish(err)
	case n > 0:
		b.encoder.Flush()
	}
}

// reading is one use of a body: who reads on after the end does not meet the next.
type reading struct{ *body }

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
	b := r.body
	if b == nil {
		return 0, io.ErrClosedPipe
	}
	for b.at == len(b.out) {
		if b.err != nil {
			return 0, b.err
		}
		b.fill()
	}
	n := copy(p, b.out[b.at:])
	b.at += n
	return n, nil
}

// WriteTo implements io.WriterTo.
func (r *reading) WriteTo(w io.Writer) (written int64, err error) {
	b := r.body
	if b == nil {
		return 0, io.ErrClosedPipe
	}
	for {
		if b.at < len(b.out) {
			n, err := w.Write(b.out[b.at:])
			b.at += n
			written += int64(n)
			if err != nil {
				return written, err
			}
		}
		switch {
		case b.err == io.EOF:
			return written, nil
		case b.err != nil:
			return written, b.err
		}
		b.fill()
	}
}

// Whole returns the encoded body and true if there is all of it, or else what has
// come of the other and false.
func (r *reading) Whole() ([]byte, bool) {
	b := r.body
	if b == nil {
		return nil, false
	}
	if w, ok := b.from.(whole); ok && b.err == nil {
		so, _ := w.Whole()
		return so, false // something will come at once
	}
	return b.out[b.at:], b.err == io.EOF
}

// Close implements io.Closer.
func (r *reading) Close() error {
	b := r.body
	if b == nil {
		return nil
	}
	r.body = nil
	err := b.from.Close()
	b.from = nil
	if cap(b.out) > keptSize {
		b.out = nil
	}
	b.encoder.Reset(io.Discard)
	b.busy.Add(-1)
	b.pool.Put(b)
	return err
}
