package h2

import (
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
)

// An expectation that nobody waits to be met any more is not met: behind the head of the
// answer a 100 (Continue) would be taken for a trailer that does not end its stream, by
// which the client resets it, and who sends its body has not waited (RFC 9110 section
// 10.1.1).
func TestExpectTooLate(t *testing.T) {
	begin := make(chan struct{})
	start := sync.OnceFunc(func() { close(begin) })
	defer start()
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		if string(ex.Request.Target) == "/p" {
			<-begin
			io.Copy(io.Discard, ex.Request.Body)
			ex.Answer(200, "late")
			return
		}
		ex.Response.Status, ex.Response.Length, ex.Response.Body = 200, -1, ex.Request.Body
	})
	c := r.dial()
	// Who reads a body waits for so long, and finds nothing.
	r.server.SetLimits(Limits{Body: time.Second / 4})

	c.headers(1, false, with(without(post(), ":path"), ":path: /streams", "expect: 100-continue")...)
	if got := c.heads(1); !slices.Equal(got, []string{"200"}) {
		t.Errorf("behind the head of the answer: %q", got)
	}

	c.headers(3, false, post("expect: 100-continue")...)
	c.fr.WriteData(3, false, []byte("a"))
	c.settle()
	start()
	if got := c.heads(3); !slices.Equal(got, []string{"200"}) {
		t.Errorf("behind part of the body: %q", got)
	}
}

// heads reads until stream id has ended, and returns the statuses that came.
func (c *client) heads(id uint32) (statuses []string) {
	c.t.Helper()
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		var ended bool
		switch f := f.(type) {
		case *http2.HeadersFrame:
			fields, err := c.dec.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				c.t.Fatal(err)
			}
			if f.StreamID == id {
				statuses, ended = append(statuses, fields[0].Value), f.StreamEnded()
			}
		case *http2.DataFrame:
			ended = f.StreamEnded()
		case *http2.RSTStreamFrame:
			ended = true
		}
		if ended && f.Header().StreamID == id {
			return statuses
		}
	}
}

// settle returns when the server has taken all that was sent so far.
func (c *client) settle() {
	c.t.Helper()
	c.fr.WritePing(false, [8]byte{'s', 'o'})
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		if p, ok := f.(*http2.PingFrame); ok && p.IsAck() {
			return
		}
	}
}
