package h2

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

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

// restless is a connection that cannot rest now.
type restless struct{ *rester }

func (restless) Rest(time.Time, interface{ Resume() }) bool { return false }

// inBubble serves a client over a pipe, in a bubble whose clock stands while anybody has
// something to do. What the server says is read all the time, and ends up in the channel that is
// returned, frame by frame, as outcomes; it is closed at the end of the connection.
func inBubble(t *testing.T, o Options, wrap func(*rester) net.Conn) (s *Server, c *client, said chan string) {
	t.Helper()
	if o.Handler == nil {
		o.Handler = &recorder{handler: echo}
	}
	near, far := net.Pipe()
	s = New(o)
	var serving sync.WaitGroup
	t.Cleanup(func() { near.Close(); serving.Wait() })
	conn := &rester{Conn: far}
	serving.Go(func() { conn.serve(s, wrap(conn), &Peer{}) })
	c = &client{t: t, nc: near, fr: http2.NewFramer(near, near), dec: hpack.NewDecoder(4096, nil)}
	c.enc = newEncoder(c)
	said = make(chan string, 1<<16)
	serving.Go(func() {
		defer close(said)
		for {
			f, err := c.fr.ReadFrame()
			if err != nil {
				return
			}
			if f, ok := f.(*http2.GoAwayFrame); ok {
				said <- "GOAWAY " + f.ErrCode.String()
				continue
			}
			said <- f.Header().Type.String()
		}
	})
	io.WriteString(near, http2.ClientPreface)
	c.fr.WriteSettings()
	c.fr.WriteSettingsAck()
	return s, c, said
}

// last is the last that was said before the connection ended.
func last(said chan string) (text string) {
	for text = range said {
	}
	return text
}

func asIs(r *rester) net.Conn { return r }

// What a connection has cost is not forgotten while it rests: a flood goes on where it was,
// whatever it consists of.
func TestRestForgivesNoFlood(t *testing.T) {
	for name, send := range map[string]func(c *client, i int){
		"PING":     func(c *client, _ int) { c.fr.WritePing(false, [8]byte{}) },
		"SETTINGS": func(c *client, _ int) { c.fr.WriteSettings() },
		"rapid reset": func(c *client, i int) {
			if i%10 == 0 { // one costs ten times as much
				c.headers(uint32(i/5+1), false, post()...)
				c.fr.WriteRSTStream(uint32(i/5+1), http2.ErrCodeCancel)
			}
		},
		"CONTINUATION": func(c *client, i int) {
			if i%10 == 0 {
				id := uint32(i/5 + 1)
				c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: true, BlockFragment: c.block("x: y")})
				c.fr.WriteContinuation(id, true, nil)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, said := inBubble(t, Options{Handler: &recorder{handler: func(ex *exchange.Exchange) {
					for !ex.Request.Peer.Gone() {
						time.Sleep(time.Millisecond)
					}
					ex.Answer(exchange.StatusClientGone, "")
				}}}, asIs)
				const each, batches = 1500, 10
				sent := 0
				for range batches {
					for range each {
						send(c, sent)
						sent++
					}
					time.Sleep(3 * time.Second) // which gives back 600
					synctest.Wait()
					if s.Resting() == 0 {
						break
					}
				}
				c.nc.SetReadDeadline(time.Now().Add(time.Second))
				if got := last(said); got != "GOAWAY ENHANCE_YOUR_CALM" || sent < 2*each {
					t.Errorf("%d frames in batches, the connection rests behind each, end with %q", sent, got)
				}
			})
		})
	}
}

// A client that is woken for nothing, as by part of a record of TLS, has no more time for that:
// and who cannot rest is served nevertheless, and has as much.
func TestRestIsPartOfTheWait(t *testing.T) {
	for name, wrap := range map[string]func(*rester) net.Conn{
		"woken":    func(r *rester) net.Conn { return r },
		"restless": func(r *rester) net.Conn { return restless{r} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var nc net.Conn
				s, c, said := inBubble(t, Options{}, func(r *rester) net.Conn { nc = wrap(r); return nc })
				s.SetLimits(Limits{Idle: time.Minute})
				c.headers(1, true, get...)
				synctest.Wait()
				began := time.Now()
				for time.Since(began) < 50*time.Second {
					time.Sleep(5 * time.Second)
					synctest.Wait()
					if (s.Resting() == 1) != (name == "woken") {
						t.Fatalf("%d connections rest", s.Resting())
					}
					if s.Resting() == 1 {
						nc.(Rester).Rise()
					}
				}
				if got := last(said); got != "GOAWAY NO_ERROR" {
					t.Errorf("it ends with %q", got)
				}
				if took := time.Since(began); took < time.Minute-time.Minute/deadlineSlack || took > time.Minute+5*time.Second {
					t.Errorf("it ends after %v, want a minute", took)
				}
			})
		})
	}
}

// A client that begins a field block and says no more has as long for it as for any frame,
// however often we look whether it may rest.
func TestFieldBlockThatStopsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, said := inBubble(t, Options{}, asIs)
		s.SetLimits(Limits{Body: 10 * time.Second})
		began := time.Now()
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: c.block(get...)})
		go func() {
			time.Sleep(5 * time.Minute)
			c.nc.Close()
		}()
		if got, took := last(said), time.Since(began); got != "GOAWAY PROTOCOL_ERROR" || took > 12*time.Second {
			t.Errorf("it ends after %v with %q", took, got)
		}
		c.nc.Close()
		time.Sleep(5 * time.Minute)
	})
}

// The streams of before a rest are known behind it, whatever comes for them: those that we
// reset may still hear of, others are over.
func TestRestRemembersStreams(t *testing.T) {
	r := newRig(t, Options{RestAfter: 10 * time.Millisecond}, echo)
	c := r.dial()
	c.headers(1, false, with(post(), "content-length: 1")...)
	c.fr.WriteData(1, false, []byte("xx")) // too much
	if got := c.outcome(1); got != "RST PROTOCOL_ERROR" {
		t.Fatal(got)
	}
	c.headers(3, true, get...)
	if got := c.outcome(3); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	r.untilResting(1)
	c.fr.WriteData(1, false, []byte("xx"))
	c.headers(1, true, "x: y")
	c.fr.WriteWindowUpdate(3, 1)
	c.fr.WriteRSTStream(3, http2.ErrCodeCancel)
	if !c.alive(5) {
		t.Fatal("what comes late ends the connection")
	}
	r.untilResting(1)
	c.headers(3, true, get...)
	if got := c.outcome(3); got != "GOAWAY PROTOCOL_ERROR" {
		t.Errorf("a stream of before a rest is opened again: %q", got)
	}
}
