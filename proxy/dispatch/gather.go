package dispatch

import (
	"errors"
	"io"
	"sync/atomic"

	"quayside.io/proxy/exchange"
)

const (
	// maxGathered is as much of a body as is kept until it is whole. A longer one is
	// streamed from there on.
	maxGathered = 1 << 20
	// maxGathering bounds what all bodies hold that are kept so.
	maxGathering = 64 << 20
)

// gathered is a body of which the beginning is in memory, or all of it.
type gathered struct {
	io.ReadCloser // what is not in memory is read here
	kept          []byte
	unread        []byte // of kept
	whole         bool
	trailed       bool          // with fields behind it, which only a stream can have
	total         *atomic.Int64 // of all bodies
}

// gather reads a request's body before anybody is asked, so that a slow client costs
// the upstream nothing. It reports whether the request goes on.
func gather(ex *exchange.Exchange, total *atomic.Int64) bool {
	r := &ex.Request
	if r.Body == nil {
		return true
	}
	if w, ok := r.Body.(exchange.Whole); ok {
		if _, whole := w.Whole(); whole {
			return true
		}
	}
	g := &gathered{ReadCloser: r.Body, total: total}
	r.Body = g
	if err := g.fill(); err != nil {
		ex.Answer(exchange.BodyFault(err))
		ex.Response.Close = true
		return false
	}
	g.trailed = r.Trailer.Announced != nil || len(r.Trailer.Header.Fields()) > 0
	if g.whole && !g.trailed {
		r.Length = int64(len(g.kept))
	}
	return true
}

// fill reads until the body has ended, or memory has.
func (g *gathered) fill() error {
	defer func() { g.unread = g.kept }()
	for len(g.kept) < maxGathered {
		if len(g.kept) == cap(g.kept) {
			g.kept = append(g.kept, make([]byte, max(4<<10, len(g.kept)))...)[:len(g.kept)]
		}
		n, err := g.ReadCloser.Read(g.kept[len(g.kept):min(cap(g.kept), maxGathered)])
		g.kept = g.kept[:len(g.kept)+n]
		switch full := g.total.Add(int64(n)) > maxGathering; {
		case errors.Is(err, io.EOF):
			g.whole = true
			return nil
		case err != nil:
			return err
		case full:
			return nil
		}
	}
	return nil
}

// Read implements io.Reader.
func (g *gathered) Read(p []byte) (int, error) {
	if len(g.unread) > 0 {
		n := copy(p, g.unread)
		g.unread = g.unread[n:]
		return n, nil
	}
	if g.whole {
		return 0, io.EOF
	}
	return g.ReadCloser.Read(p)
}

// Whole implements exchange.Whole.
func (g *gathered) Whole() ([]byte, bool) { return g.kept, g.whole && !g.trailed }

// release gives back what gather took, and the body that it found.
func release(ex *exchange.Exchange) {
	if g, ok := ex.Request.Body.(*gathered); ok {
		g.total.Add(-int64(len(g.kept)))
		ex.Request.Body = g.ReadCloser
	}
}

var _ exchange.Whole = (*gathered)(nil)
