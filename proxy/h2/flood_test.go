package h2

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/frame"

	"quayside.io/proxy/exchange"
)

// Work that costs the client little and us more ends the connection, and no
// goroutine outlives it (TestMain).
func TestFloods(t *testing.T) {
	never := func(ex *exchange.Exchange) {
		for !ex.Request.Peer.Gone() {
			time.Sleep(time.Millisecond)
		}
		ex.Answer(exchange.StatusClientGone, "")
	}
	const many = 20_000
	for _, c := range []struct {
		name string
		send func(c *client, i int)
		want string
	}{
		{"PING", func(c *client, _ int) { c.fr.WritePing(false, [8]byte{}) }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"SETTINGS", func(c *client, _ int) { c.fr.WriteSettings() }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"large SETTINGS", func(c *client, i int) {
			c.fr.WriteRawFrame(http2.FrameSettings, 0, 0, bytes.Repeat([]byte{0, 4, 0, 0, 0, byte(i)}, 2000))
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"rapid reset", func(c *client, i int) {
			c.headers(uint32(2*i+1), true, get...)
			c.fr.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"streams that we reset", func(c *client, i int) {
			c.headers(uint32(2*i+1), false, post()...)
			c.fr.WriteRawFrame(http2.FrameWindowUpdate, 0, uint32(2*i+1), make([]byte, 4))
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"malformed requests", func(c *client, i int) { c.headers(uint32(2*i+1), true, "x: y") }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"more streams than allowed", func(c *client, i int) { c.headers(uint32(2*i+1), true, get...) }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"PRIORITY", func(c *client, i int) { c.fr.WritePriority(uint32(2*i+1), http2.PriorityParam{}) }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"WINDOW_UPDATE", func(c *client, _ int) { c.fr.WriteWindowUpdate(0, 1) }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"WINDOW_UPDATE of a closed stream", func(c *client, i int) {
			if i == 0 {
				c.headers(1, true, "x: y") // is refused
			}
			c.fr.WriteWindowUpdate(1, frame.WorthUpdate)
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"WINDOW_UPDATE of a connection that needs none", func(c *client, _ int) { c.fr.WriteWindowUpdate(0, frame.WorthUpdate) }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"WINDOW_UPDATE of a stream that needs none", func(c *client, i int) {
			if i == 0 {
				c.headers(1, true, get...)
			}
			c.fr.WriteWindowUpdate(1, frame.WorthUpdate)
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"small DATA of a stream that we reset", func(c *client, i int) {
			if i == 0 {
				c.headers(1, false, post()...)
				c.fr.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4))
			}
			c.fr.WriteData(1, false, []byte("x"))
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"unknown frames", func(c *client, _ int) { c.fr.WriteRawFrame(0x77, 0, 0, nil) }, "GOAWAY ENHANCE_YOUR_CALM"},
		{"empty DATA", func(c *client, i int) {
			if i == 0 {
				c.headers(1, false, post()...)
			}
			c.fr.WriteData(1, false, nil)
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"empty CONTINUATION", func(c *client, i int) {
			if i == 0 {
				c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true})
			}
			c.fr.WriteContinuation(1, false, nil)
		}, "GOAWAY ENHANCE_YOUR_CALM"},
		{"a field block without end", func(c *client, i int) {
			if i == 0 {
				c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true})
			}
			c.fr.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, frame.Size))
		}, "GOAWAY ENHANCE_YOUR_CALM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{}, never)
			cl := r.dial()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for i := range many {
					c.send(cl, i)
				}
			}()
			for got := ""; !strings.HasPrefix(got, "GOAWAY"); {
				if got = cl.outcome(1); got == "closed" || strings.HasPrefix(got, "GOAWAY") && got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
					break
				}
			}
			cl.nc.Close()
			<-sent
		})
	}
}

// What an honest client does at its worst is no flood.
func TestNoFlood(t *testing.T) {
	r := newRig(t, Options{}, func(ex *exchange.Exchange) { ex.Answer(200, strings.Repeat("x", 30_000)) })
	c := r.dial()
	c.fr.WriteWindowUpdate(0, 1<<30)
	next := uint32(1)
	for range 20 { // a browser that leaves a page of a hundred pictures, again and again, having seen some
		for i := range 100 {
			c.headers(next, true, get...)
			if i%2 == 0 {
				if got := c.outcome(next); !strings.HasPrefix(got, "200 ") {
					t.Fatal(got)
				}
				c.fr.WriteWindowUpdate(next, 30_000)
				c.fr.WritePing(false, [8]byte{1})
			} else {
				c.fr.WriteRSTStream(next, http2.ErrCodeCancel)
			}
			next += 2
		}
	}
	if !c.alive(next) {
		t.Error("it was taken for a flood")
	}
}

// A client that provokes replies and reads none of them holds a bounded part of our
// memory, and not for long.
func TestRepliesThatNobodyReads(t *testing.T) {
	r := newRig(t, Options{}, echo)
	c := r.dial()
	c.nc.SetDeadline(time.Now().Add(20 * time.Second))
	fields := with(get, "x: "+strings.Repeat("y", 10_000))
	for i := uint32(1); ; i += 2 { // never reads
		if err := c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: i, EndStream: true, EndHeaders: true, BlockFragment: c.block(fields...)}); err != nil {
			break
		}
	}
}

// A bomb of fields that unfold to much more than their size is answered 431, and
// the table stays in step.
func TestBombOfFields(t *testing.T) {
	r := newRig(t, Options{}, echo)
	c := r.dial()
	fields := with(get, "x: "+strings.Repeat("y", 3000))
	for range 200 {
		fields = append(fields, "x: "+strings.Repeat("y", 3000)) // one byte each
	}
	b := c.block(fields...)
	if len(b) > 4000 {
		t.Fatalf("the bomb has %d bytes", len(b))
	}
	c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: b})
	if got := c.outcome(1); !strings.HasPrefix(got, "431 ") {
		t.Errorf("got %q", got)
	}
	c.headers(3, true, with(get, "z: w")...)
	if got := c.outcome(3); !strings.HasSuffix(got, "z=w") {
		t.Errorf("behind the bomb: %q", got)
	}
	c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, EndStream: true, EndHeaders: true,
		BlockFragment: append([]byte{0x82, 0x86, 0x84, 0x00, 1, 'x', 0x7f, 0xff, 0xff, 0x7f}, make([]byte, 100)...)})
	if got := c.outcome(5); got != "GOAWAY COMPRESSION_ERROR" {
		t.Errorf("a string of 2 MiB: %q", got)
	}
}

// Clients that fall silent are given up: without a request, within a frame, within a
// field block, in a body, and where they grant no window.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		send func(*client)
		want string
	}{
		"before the preface":   {nil, "closed"},
		"without a request":    {func(*client) {}, "GOAWAY NO_ERROR"},
		"within a frame":       {func(c *client) { c.nc.Write([]byte{0, 0, 8, 6}) }, "closed"},
		"within a field block": {func(c *client) { c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}) }, "GOAWAY PROTOCOL_ERROR"},
		"in a body":            {func(c *client) { c.headers(1, false, post()...) }, "200 POST /p host=a.example path=/p length=-1 body= error=i/o timeout"},
		"having granted nothing": {func(c *client) {
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			c.headers(1, true, get...)
		}, "RST CANCEL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{Timeout: 100 * time.Millisecond}, echo)
			c2 := r.raw()
			if c.send != nil {
				io.WriteString(c2.nc, http2.ClientPreface)
				c2.fr.WriteSettings()
				c.send(c2)
			}
			if got := c2.outcome(1); got != c.want && !(c.want == "closed" && strings.HasPrefix(got, "GOAWAY")) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A client that grants window byte by byte is given up as one that grants none.
func TestNextToNothingGranted(t *testing.T) {
	r := newRig(t, Options{Timeout: 100 * time.Millisecond}, func(ex *exchange.Exchange) { ex.Answer(200, strings.Repeat("x", 1<<20)) })
	c := r.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	c.headers(1, true, get...)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-tick.C:
				c.fr.WriteWindowUpdate(1, 1)
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	if got := c.outcome(1); got != "RST CANCEL" {
		t.Errorf("got %q", got)
	}
	close(stop)
	<-stopped
}
