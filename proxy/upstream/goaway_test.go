package upstream_test

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// A pod that leaves says which requests it will not look at. They are asked again
// elsewhere, and so are those whose body was on its way, as long as all of it that has
// been read is in memory; others get a 502.
func TestGoAwayWhileSending(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, rest string // what the client sends, before GOAWAY and after
		length      bool   // it says how much that will be
		want        int
	}{
		{"in the middle of a body", "hello ", "world", false, 200},
		{"in the middle of a body of known length", "hello ", "world", true, 200},
		{"behind the body", "hello", "", false, 200},
		{"behind a body of known length", "hello", "", true, 200},
		{"as much as is kept", strings.Repeat("x", 32<<10), "y", false, 200},
		{"more than is kept", strings.Repeat("x", 48<<10), "y", false, 502},
		{"more than is kept, later", "x", strings.Repeat("y", 200<<10), false, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			left := make(chan struct{})
			leave := sync.OnceFunc(func() { close(left) })
			var seen atomic.Int64 // by the pod that left
			var got atomic.Int64  // by the one that answers
			p := playFrames(t,
				podScript{each: func(pc *podConn, n int) {
					if seen.Add(int64(n)) >= int64(len(c.first)) {
						pc.fr.WriteGoAway(0, 0, nil)
						leave()
					}
				}, answer: func(*podConn, uint32) {}},
				podScript{each: func(pc *podConn, n int) {
					got.Add(int64(n))
					if n > 0 {
						pc.fr.WriteWindowUpdate(0, uint32(n))
						pc.fr.WriteWindowUpdate(pc.last, uint32(n))
					}
				}, answer: (*podConn).fine})
			_, b := newHTTP2Engine(t, upstream.Options{})
			b.SetEndpoints(endpoints(p.addr))
			r, w := io.Pipe()
			go func() {
				io.WriteString(w, c.first)
				if c.rest != "" {
					<-left
					time.Sleep(10 * time.Millisecond) // the next one waits for it
					io.WriteString(w, c.rest)
				}
				w.Close()
			}()
			ex := &exchange.Exchange{}
			request(ex, "POST", "/")
			ex.Request.Body, ex.Request.Length = r, -1
			if c.length {
				ex.Request.Length = int64(len(c.first) + len(c.rest))
			}
			b.Forward(ex)
			if ex.Response.Status != c.want {
				t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
			}
			if ex.Response.Body != nil {
				ex.Response.Body.Close()
			}
			r.Close()
			if n := int64(len(c.first) + len(c.rest)); c.want == 200 && got.Load() != n {
				t.Errorf("the pod that answers has seen %d of %d bytes", got.Load(), n)
			}
		})
	}
}
