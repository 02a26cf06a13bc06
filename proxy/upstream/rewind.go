package upstream

import (
	"errors"
	"io"
	"os"
	"sync"
)

// rewindLimit is how much of a streamed body is kept to be sent once more.
const rewindLimit = bufferSize

// errRewound says that a later try reads the body by now.
var errRewound = errors.New("the request's body is sent again")

// rewinder is a request's body that may be read again from its start, as long as all
// that was read of it is kept. A pod that leaves, or refuses, says of some requests
// that it has not looked at them; by then a part of their bodies is mostly on its way.
type rewinder struct {
	source  io.ReadCloser
	buffers *sync.Pool
	buf     *[]byte    // of the pool: where kept begins
	reading sync.Mutex // held while the source is read

	mu      sync.Mutex
	kept    []byte
	total   int64   // read from the source
	err     error   // how it has ended
	current *replay // the reading that counts
}

// replay is one reading of the body.
type replay struct {
	*rewinder
	at int64
}

func newRewinder(source io.ReadCloser, buffers *sync.Pool) *rewinder {
	r := &rewinder{source: source, buffers: buffers}
	r.rewind()
	return r
}

// rewind makes another reading the one that counts, unless something of what was read
// is not kept. One before may still wait for the source; what it gets, the new one
// gets.
func (r *rewinder) rewind() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total != int64(len(r.kept)) || r.err != nil && r.err != io.EOF {
		return false
	}
	r.current = &replay{rewinder: r}
	return true
}

// free gives the memory back. Nobody may read any more.
func (r *rewinder) free() {
	if r.buf != nil {
		r.buffers.Put(r.buf)
		r.buf = nil
	}
}

// Read implements io.Reader.
func (p *replay) Read(b []byte) (int, error) {
	if n, err := p.again(b); n > 0 || err != nil {
		return n, err
	}
	p.reading.Lock()
	defer p.reading.Unlock()
	if n, err := p.again(b); n > 0 || err != nil { // a reading before has read on
		return n, err
	}
	n, err := p.source.Read(b)
	p.keep(b[:n], err)
	return n, err
}

// Close implements io.Closer: it wakes who waits for the source.
func (p *replay) Close() error { return p.source.Close() }

// again returns what was read before; nothing and no error: ask the source.
func (p *replay) again(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.at < int64(len(p.kept)):
		n := copy(b, p.kept[p.at:])
		p.at += int64(n)
		return n, nil
	case p != p.current: // nobody needs what it would read
		return 0, errRewound
	}
	return 0, p.err
}

// keep notes what came of reading the source.
func (p *replay) keep(b []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := p.total == int64(len(p.kept))
	if whole && (p != p.current || len(p.kept)+len(b) <= rewindLimit) {
		if p.buf == nil && len(b) > 0 {
			p.buf, _ = p.buffers.Get().(*[]byte)
			p.kept = (*p.buf)[:0]
		}
		p.kept = append(p.kept, b...)
	}
	p.total += int64(len(b))
	p.at += int64(len(b))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // after that one may go on
		p.err = err
	}
}
