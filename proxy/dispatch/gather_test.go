package dispatch

import (
	"io"
	"sync"
	"testing"

	"quayside.io/proxy/exchange"
)

// trailing is a body of which the reader has had as much as is kept while its end, with
// fields behind it, comes in on another goroutine.
type trailing struct {
	left  int
	ends  func()
	mu    sync.Mutex
	ended sync.WaitGroup
}

func (b *trailing) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), b.left)
	if b.left -= n; b.left == 0 {
		b.ended.Go(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ends()
		})
	}
	return n, nil
}

func (*trailing) Close() error { return nil }

// Fields behind a body are looked at when it has ended, and not before: a front end may
// be adding them. The race detector tells.
func TestTrailersAreLeftAloneUntilTheEnd(t *testing.T) {
	ex := &exchange.Exchange{}
	r := &ex.Request
	b := &trailing{left: maxGatherMemory, ends: func() { r.Trailer.Add([]byte("X-Sum"), []byte("1")) }}
	r.Body, r.Length, r.Forwarding = b, -1, &exchange.Forwarding{Gather: true}
	d := &Dispatcher{}
	if !d.gather(ex) {
		t.Fatalf("answered %d", ex.Response.Status)
	}
	if g, ok := r.Body.(*gathered); !ok || g.whole || r.Length != -1 {
		t.Errorf("it is whole, or its length is known: %d", r.Length)
	}
	b.ended.Wait()
	if rest, err := io.ReadAll(io.LimitReader(r.Body, maxGatherMemory)); err != nil || len(rest) != maxGatherMemory {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
	release(ex)
}
