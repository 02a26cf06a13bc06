package exporter

import (
	"sync"

	"quayside.io/proxy/otlp"
	"quayside.io/proxy/refresh"
)

const (
	// maxBatch is how large a batch grows, in bytes, whatever was asked for: collectors
	// take no messages of more than 4 MiB.
	maxBatch = 1 << 20
	// maxQueue bounds all that waits, in bytes.
	maxQueue = 32 << 20
)

// batch is spans that travel together.
type batch struct {
	spans []byte // as otlp.AppendSpan makes them
	n     int
}

// queue is what waits to be sent.
type queue struct {
	some chan struct{} // there is a span
	full chan struct{} // there is a batch that is full

	mu           sync.Mutex
	most, each   int // spans in all, and in a batch
	whole        []*batch
	open         *batch // not full yet; nil: nothing
	spans, bytes int    // of all of them
	spare        *batch
}

func newQueue() *queue {
	return &queue{some: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

// limit says how many spans may wait, and travel together.
func (q *queue) limit(most, each int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most, q.each = most, each
}

// add copies a span, and reports whether there was room.
func (q *queue) add(span []byte) bool {
	q.mu.Lock()
	if q.spans >= q.most || q.bytes+len(span) > maxQueue {
		q.mu.Unlock()
		return false
	}
	first := q.spans == 0
	b := q.open
	if b == nil {
		if b = q.spare; b == nil {
			b = &batch{}
		}
		q.open, q.spare = b, nil
	}
	before := len(b.spans)
	b.spans = otlp.AppendSpan(b.spans, span)
	b.n++
	q.spans++
	q.bytes += len(b.spans) - before
	full := b.n >= q.each || len(b.spans) >= maxBatch
	if full {
		q.whole, q.open = append(q.whole, b), nil
	}
	q.mu.Unlock()
	if first {
		refresh.Signal(q.some)
	}
	if full {
		refresh.Signal(q.full)
	}
	return true
}

// empty reports whether nothing waits.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spans == 0
}

// take returns the oldest batch that is full or, if so asked, the one that is not; nil:
// there is none.
func (q *queue) take(all bool) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	var b *batch
	switch {
	case len(q.whole) > 0:
		b = q.whole[0]
		q.whole[0] = nil
		q.whole = q.whole[1:]
	case all && q.open != nil:
		b, q.open = q.open, nil
	default:
		return nil
	}
	q.spans -= b.n
	q.bytes -= len(b.spans)
	return b
}

// free takes a batch back, for its memory.
func (q *queue) free(b *batch) {
	b.spans, b.n = b.spans[:0], 0
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = b
}
