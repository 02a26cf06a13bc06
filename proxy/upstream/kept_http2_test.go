package upstream_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// A body that was gathered goes over HTTP/2, too, from its beginning to whoever is asked
// next, however far the one before had read it, and whether that had looked at it.
func TestKeptBodyIsSentAgainOverHTTP2(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 40_000)
	wide := []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1 << 24}}
	takes := func(c *podConn, n int) {
		if n > 0 {
			c.fr.WriteWindowUpdate(0, uint32(n))
		}
	}
	resets := podScript{settings: wide, each: takes, answer: func(c *podConn, id uint32) { c.fr.WriteRSTStream(id, http2.ErrCodeInternal) }}
	busy := podScript{settings: wide, each: takes, answer: func(c *podConn, id uint32) { c.head(id, true, ":status: 503") }}
	// leavesAfter leaves behind n bytes of a body, and never looked at it.
	leavesAfter := func(n int, settings ...http2.Setting) podScript {
		seen := 0
		return podScript{settings: settings, each: func(c *podConn, more int) {
			if seen += more; seen >= n && seen-more < n {
				c.fr.WriteGoAway(0, 0, nil)
			}
		}, answer: func(*podConn, uint32) {}}
	}
	next := exchange.NextError | exchange.Next503
	for _, c := range []struct {
		name  string
		first podScript
		body  string
		known bool // its length is
		next  exchange.Next
	}{
		{"reset behind it", resets, "short", false, next},
		{"reset behind it, of known length", resets, "short", true, next},
		{"passed on", busy, "short", false, next},
		{"passed on, long", busy, long[:48<<10], true, next},
		{"left within what a window holds", leavesAfter(32<<10, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 32 << 10}), long, true, next},
		{"left in the middle", leavesAfter(48 << 10), long, true, next},
		{"left in the middle, of unknown length", leavesAfter(48 << 10), long, false, next},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			got := map[*podConn]int{} // of a body
			good := podScript{settings: wide, each: func(pc *podConn, n int) {
				takes(pc, n)
				mu.Lock()
				defer mu.Unlock()
				got[pc] += n
			}, answer: func(pc *podConn, id uint32) {
				mu.Lock()
				defer mu.Unlock()
				if got[pc] != len(c.body) {
					t.Errorf("the pod that answers has seen %d of %d bytes", got[pc], len(c.body))
				}
				got[pc] = 0
				pc.fine(id)
			}}
			bad, well := playFrames(t, c.first, good), playFrames(t, good)
			_, b := newHTTP2Engine(t, upstream.Options{})
			b.SetEndpoints(endpoints(bad.addr, well.addr))
			for range 2 { // one begins at each endpoint
				ex := &exchange.Exchange{}
				request(ex, "PUT", "/")
				ex.Request.Body, ex.Request.Length = kept{strings.NewReader(c.body)}, -1
				if c.known {
					ex.Request.Length = int64(len(c.body))
				}
				ex.Request.Forwarding = &exchange.Forwarding{Gather: true, Next: c.next}
				b.Forward(ex)
				if ex.Response.Status != 200 {
					t.Errorf("%d %s", ex.Response.Status, ex.Response.Text)
				}
				if ex.Response.Body != nil {
					io.Copy(io.Discard, ex.Response.Body)
					ex.Response.Body.Close()
				}
			}
		})
	}
}

// A pod that ends a fresh connection upon a request is not asked once more for that, as by
// HTTP/1.1; one that was there before says nothing about the pod.
func TestFreshConnectionsThatEnd(t *testing.T) {
	ends := is(func(c *podConn, id uint32) { c.Close() })
	p := playFrames(t, ends)
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	if status, body := forward(b, "GET", ""); status != 502 || p.conns.Load() != 1 {
		t.Errorf("%d %q over %d connections, want one", status, body, p.conns.Load())
	}
	p = playFrames(t, is(func(c *podConn, id uint32) {
		if c.nth > 1 {
			c.Close()
			return
		}
		c.fine(id)
	}))
	_, b = newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	for n := range int64(2) {
		if status, body := forward(b, "GET", ""); status != 200 || p.conns.Load() != n+1 {
			t.Errorf("%d %q over %d connections, want %d", status, body, p.conns.Load(), n+1)
		}
	}
}
