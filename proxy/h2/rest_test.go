package h2

import (
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
)

// untilResting waits until n connections rest.
func (r *rig) untilResting(n int) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); r.server.Resting() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d connections rest, want %d", r.server.Resting(), n)
		}
	}
}

// A connection that has rested is as good as before, as often as it rests, and knows the
// fields of before; a frame whose pieces come one by one ends a rest like any other.
func TestServesAfterRest(t *testing.T) {
	r := newRig(t, Options{RestAfter: 10 * time.Millisecond}, echo)
	c := r.dial()
	for id := uint32(1); id < 9; id += 2 {
		r.untilResting(1)
		c.headers(id, true, with(get, "x-known: "+strings.Repeat("y", 100))...)
		if got := c.outcome(id); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, strings.Repeat("y", 100)) {
			t.Fatalf("request %d: %s", id, got)
		}
	}
	r.untilResting(1)
	io.WriteString(c.nc, "\x00")
	r.untilResting(0)
	time.Sleep(50 * time.Millisecond) // in the middle of a frame nobody rests
	io.WriteString(c.nc, "\x00\x08\x06\x00\x00\x00\x00\x00quaysidE")
	if !c.alive(9) {
		t.Error("it is not served")
	}
}

// Who is asked something rests not, nor who is in the middle of a field block.
func TestNoRestWhileBusy(t *testing.T) {
	release := make(chan struct{})
	r := newRig(t, Options{RestAfter: 10 * time.Millisecond}, func(ex *exchange.Exchange) {
		<-release
		echo(ex)
	})
	c := r.dial()
	c.headers(1, true, get...)
	open := r.dial()
	block := open.block(get...)
	open.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: block[:3]})
	time.Sleep(200 * time.Millisecond)
	if n := r.server.Resting(); n != 0 {
		t.Errorf("%d connections rest", n)
	}
	open.fr.WriteContinuation(1, true, block[3:])
	close(release)
	for _, c := range []*client{c, open} {
		if got := c.outcome(1); !strings.HasPrefix(got, "200 ") {
			t.Error(got)
		}
	}
	r.untilResting(2)
}

// A rest ends with the client's patience or ours, or when everybody is told to leave.
func TestRestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		idle time.Duration
		end  func(*rig, *client)
		want string
	}{
		"idle":    {4 * time.Second, func(*rig, *client) {}, "GOAWAY NO_ERROR"},
		"leaving": {time.Minute, func(r *rig, _ *client) { r.server.SetLeaving(true) }, "GOAWAY NO_ERROR"},
		"closed":  {time.Minute, func(_ *rig, c *client) { c.nc.(interface{ CloseWrite() error }).CloseWrite() }, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // one takes its time, so that it is seen to rest on a busy machine
			r := newRig(t, Options{RestAfter: 10 * time.Millisecond}, echo)
			r.server.SetLimits(Limits{Idle: c.idle})
			cl := r.dial()
			r.untilResting(1)
			c.end(r, cl)
			if got := cl.outcome(1); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for got := ""; got != "closed"; { // and then nothing holds it
				got = cl.outcome(1)
			}
			r.untilResting(0)
		})
	}
}

// One that waits for its next request goes for the sake of others, told and in order; who
// was just asked something stays, and who has asked nothing yet.
func TestSpare(t *testing.T) {
	release := make(chan struct{})
	r := newRig(t, Options{RestAfter: 10 * time.Millisecond}, func(ex *exchange.Exchange) {
		if string(ex.Request.Target) == "/slow" {
			<-release
		}
		echo(ex)
	})
	busy, fresh := r.dial(), r.dial()
	busy.headers(1, true, with(without(get, ":path"), ":path: /slow")...)
	for deadline := time.Now().Add(time.Minute); r.server.stats.streams.Load() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the slow request does not arrive")
		}
	}
	r.untilResting(1) // fresh
	if r.server.Spare() {
		t.Error("there is one to spare among none")
	}
	idle := r.dial()
	idle.headers(1, true, get...)
	if got := idle.outcome(1); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	r.untilResting(2)
	if !r.server.Spare() {
		t.Error("there is none to spare")
	}
	if r.server.Spare() {
		t.Error("one goes twice")
	}
	if got := idle.outcome(3); got != "GOAWAY NO_ERROR" {
		t.Errorf("the idle one: %q", got)
	}
	close(release)
	if got := busy.outcome(1); !strings.HasPrefix(got, "200 ") {
		t.Errorf("the busy one: %q", got)
	}
	if !fresh.alive(1) {
		t.Error("the fresh one is not served")
	}
}
