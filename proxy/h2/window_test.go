package h2

import (
	"io"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
)

// sender sends DATA within the connection's window, which it takes from what it hears.
type sender struct {
	*client
	window int
	more   chan int
	fault  chan string
}

func newSender(c *client) *sender {
	s := &sender{client: c, window: connWindow, more: make(chan int, 1000), fault: make(chan string, 1)}
	go func() {
		for {
			f, err := c.fr.ReadFrame()
			if err != nil {
				close(s.more)
				return
			}
			switch f := f.(type) {
			case *http2.WindowUpdateFrame:
				if f.StreamID == 0 {
					s.more <- int(f.Increment)
				}
			case *http2.GoAwayFrame:
				s.fault <- f.ErrCode.String()
				return
			}
		}
	}()
	return s
}

// data sends n bytes with so much padding as soon as the window has room for them, and
// reports whether it got any.
func (s *sender) data(id uint32, end bool, n, padding int) bool {
	s.t.Helper()
	size, fill := n, []byte(nil)
	if padding > 0 {
		size, fill = n+1+padding, make([]byte, padding)
	}
	for s.window < size {
		select {
		case n, ok := <-s.more:
			if !ok {
				s.t.Error("the connection is closed")
				return false
			}
			s.window += n
		case why := <-s.fault:
			s.t.Errorf("GOAWAY %s", why)
			return false
		case <-time.After(5 * time.Second):
			s.t.Errorf("no room for %d bytes: %d are left of the window", size, s.window)
			return false
		}
	}
	s.window -= size
	return s.fr.WriteDataPadded(id, end, make([]byte, n), fill) == nil
}

// TestTheConnectionsWindowComesBack whatever becomes of the DATA that was sent into it: else
// a connection would stand still after a megabyte that nobody has read.
func TestTheConnectionsWindowComesBack(t *testing.T) {
	const largest = 16 << 10
	reads := func(ex *exchange.Exchange) {
		io.Copy(io.Discard, ex.Request.Body)
		ex.Answer(200, "")
	}
	ignores := func(ex *exchange.Exchange) { ex.Answer(200, "") }
	upload := with(get[1:], ":method: POST")
	for name, c := range map[string]struct {
		handler handlerFunc
		fields  []string
		send    func(s *sender, id uint32) bool // of one request, 16 KiB at least
	}{
		"it is read":        {reads, upload, func(s *sender, id uint32) bool { return s.data(id, true, largest, 0) }},
		"it is padding":     {reads, upload, func(s *sender, id uint32) bool { return s.data(id, true, largest-256, 255) }},
		"nobody reads it":   {ignores, upload, func(s *sender, id uint32) bool { return s.data(id, true, largest, 0) }},
		"it comes too late": {ignores, upload, func(s *sender, id uint32) bool { time.Sleep(time.Millisecond); return s.data(id, false, largest, 0) }},
		"behind the end": {reads, upload, func(s *sender, id uint32) bool {
			return s.data(id, true, 1, 0) && s.data(id, false, largest, 0)
		}},
		"more than was told": {reads, with(upload, "content-length: 1"), func(s *sender, id uint32) bool { return s.data(id, false, largest, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{}, c.handler)
			s := newSender(r.dial())
			for sent, id := 0, uint32(1); sent < 2*connWindow; sent, id = sent+largest, id+2 {
				s.headers(id, false, c.fields...)
				if !c.send(s, id) {
					t.Fatalf("after %d bytes", sent)
				}
			}
		})
	}
	t.Run("more than the stream's window", func(t *testing.T) {
		r := newRig(t, Options{}, func(ex *exchange.Exchange) { time.Sleep(50 * time.Millisecond); ex.Answer(200, "") })
		s := newSender(r.dial())
		for id := uint32(1); id < 20; id += 2 {
			s.headers(id, false, upload...)
			for range streamWindow/largest + 1 {
				if !s.data(id, false, largest, 0) {
					t.Fatalf("at stream %d", id)
				}
			}
		}
	})
}

// TestRecentStreams: as many as may still be on their way are remembered, the oldest go first,
// and a lower limit keeps the latest.
func TestRecentStreams(t *testing.T) {
	r := newRecent(10)
	if r.most != leastRecent || newRecent(leastRecent).most != 2*leastRecent {
		t.Errorf("%d are remembered", r.most)
	}
	const all = 3*leastRecent + 7
	for i := range all {
		r.add(uint32(2*i+1), i%3 == 0)
		for _, have := range []int{i, max(0, i-leastRecent+1)} {
			if found, reset := r.find(uint32(2*have + 1)); !found || reset != (have%3 == 0) {
				t.Fatalf("after %d streams the one of %d: found %v, reset %v", i, have, found, reset)
			}
		}
		if gone := i - leastRecent; gone >= 0 {
			if found, _ := r.find(uint32(2*gone + 1)); found {
				t.Fatalf("after %d streams the one of %d is remembered", i, gone)
			}
		}
	}
	if len(r.ids) != leastRecent || r.late != latePerStream*leastRecent {
		t.Errorf("%d are remembered, and %d frames are free", len(r.ids), r.late)
	}
}
