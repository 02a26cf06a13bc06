package upstream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// framePod is a pod that says what it likes: the nth connection plays the nth
// script, those after it the last.
type framePod struct {
	addr  string
	conns atomic.Int64
}

// podConn is one connection to it.
type podConn struct {
	net.Conn
	fr   *http2.Framer
	text bytes.Buffer
	enc  *hpack.Encoder
	nth  int    // of the request, over the connection
	last uint32 // stream of a DATA frame
}

type podScript struct {
	silent   bool            // not even settings are sent
	after    <-chan struct{} // if set, they are sent once it is closed
	settings []http2.Setting
	// answer is called with each request that has come in full.
	answer func(c *podConn, id uint32)
	// connect, if set, is called with each that has begun only.
	connect func(c *podConn, id uint32)
	// each, if set, is called with the size of each DATA frame.
	each func(c *podConn, n int)
}

func playFrames(t testing.TB, scripts ...podScript) *framePod {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &framePod{addr: l.Addr().String()}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			n := int(p.conns.Add(1)) - 1
			open.Go(func() {
				defer nc.Close()
				(&podConn{Conn: nc}).play(scripts[min(n, len(scripts)-1)])
			})
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return p
}

func (c *podConn) play(s podScript) {
	var preface [len(http2.ClientPreface)]byte
	if _, err := io.ReadFull(c, preface[:]); err != nil {
		return
	}
	if s.silent {
		io.Copy(io.Discard, c)
		return
	}
	if s.after != nil {
		<-s.after
	}
	c.fr = http2.NewFramer(c, c.Conn)
	c.fr.AllowIllegalWrites = true
	c.fr.SetMaxReadFrameSize(16 << 10)
	c.enc = hpack.NewEncoder(&c.text)
	c.fr.WriteSettings(s.settings...)
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.fr.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				c.nth++
				s.answer(c, f.StreamID)
			} else if s.connect != nil {
				s.connect(c, f.StreamID)
			}
		case *http2.DataFrame:
			if c.last = f.StreamID; s.each != nil {
				s.each(c, len(f.Data()))
			}
			if f.StreamEnded() {
				c.nth++
				s.answer(c, f.StreamID)
			}
		}
	}
}

// head sends fields, "name: value".
func (c *podConn) head(id uint32, end bool, fields ...string) {
	c.text.Reset()
	for _, f := range fields {
		i := strings.Index(f[1:], ":") + 1
		c.enc.WriteField(hpack.HeaderField{Name: f[:i], Value: strings.TrimPrefix(f[i+1:], " ")})
	}
	c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: true, BlockFragment: c.text.Bytes()})
}

func (c *podConn) fine(id uint32) {
	c.head(id, false, ":status: 200")
	c.fr.WriteData(id, true, []byte("fine"))
}

func newHTTP2Engine(t testing.TB, o upstream.Options) (*upstream.Engine, *upstream.Backend) {
	t.Helper()
	e, _ := newEngine(t, o)
	return e, e.Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}, Port: balance.PortRef{Number: 80}, HTTP2: true})
}

func is(answer func(c *podConn, id uint32)) podScript { return podScript{answer: answer} }

func fineScript() podScript { return is((*podConn).fine) }

// What a pod says that breaks the rules, ends in an honest 502, a body that is an
// error, or nothing at all; the next request is served all the same.
func TestPodsThatBreakTheRules(t *testing.T) {
	for _, c := range hostilePods() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := true
			p := playFrames(t, is(func(pc *podConn, id uint32) {
				if first {
					first = false
					c.send(pc, id)
					return
				}
				pc.fine(id)
			}), fineScript())
			_, b := newHTTP2Engine(t, upstream.Options{ReadTimeout: 20 * time.Second})
			b.SetEndpoints(endpoints(p.addr))
			status, body := forward(b, "POST", "x")
			if got := fmt.Sprintf("%d %s", status, body); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if status, body := forward(b, "GET", ""); status != 200 || body != "fine" {
				t.Errorf("the next request: %d %q", status, body)
			}
		})
	}
}

type hostilePod struct {
	name string
	send func(c *podConn, id uint32)
	want string
}

func hostilePods() []hostilePod {
	fields := func(end bool, fields ...string) func(*podConn, uint32) {
		return func(c *podConn, id uint32) {
			c.head(id, end, fields...)
			if !end {
				c.fr.WriteData(id, true, []byte("data"))
			}
		}
	}
	many := func(n int, f func(c *podConn, id uint32)) func(*podConn, uint32) {
		return func(c *podConn, id uint32) {
			for range n {
				f(c, id)
			}
			c.fine(id)
		}
	}
	return []hostilePod{
		{"no status", fields(false, "a: b"), "502"},
		{"two statuses", fields(false, ":status: 200", ":status: 200"), "502"},
		{"a status of letters", fields(false, ":status: abc"), "502"},
		{"status 101", fields(false, ":status: 101"), "502"},
		{"a status behind a field", fields(false, "a: b", ":status: 200"), "502"},
		{"another pseudo field", fields(false, ":status: 200", ":path: /"), "502"},
		{"a name in upper case", fields(false, ":status: 200", "A: b"), "502"},
		{"a line feed in a value", fields(false, ":status: 200", "a: b\r\nc: d"), "502"},
		{"Connection", fields(false, ":status: 200", "connection: close"), "502"},
		{"Transfer-Encoding", fields(false, ":status: 200", "transfer-encoding: chunked"), "502"},
		{"two lengths", fields(false, ":status: 200", "content-length: 4", "content-length: 4"), "502"},
		{"a length of letters", fields(false, ":status: 200", "content-length: x"), "502"},
		{"too long", fields(false, ":status: 200", "content-length: 3"), "error"},
		{"too short", fields(false, ":status: 200", "content-length: 5"), "error"},
		{"a body behind 204", fields(false, ":status: 204"), "error"},
		{"a huge head", fields(false, append([]string{":status: 200"}, strings.Split(strings.Repeat("a: "+strings.Repeat("v", 100)+"\n", 3000), "\n")[:2600]...)...), "502"},
		{"a large head", fields(false, append([]string{":status: 200"}, strings.Split(strings.Repeat("a: "+strings.Repeat("v", 100)+"\n", 3000), "\n")[:1900]...)...), "200 data"},
		{"DATA before the head", func(c *podConn, id uint32) { c.fr.WriteData(id, true, []byte("x")) }, "502"},
		{"a head and no end", func(c *podConn, id uint32) { c.head(id, false, ":status: 100"); c.head(id, true, ":status: 103") }, "502"},
		{"endless information", many(20, func(c *podConn, id uint32) { c.head(id, false, ":status: 103") }), "502"},
		{"information first", func(c *podConn, id uint32) { c.head(id, false, ":status: 103", "link: x"); c.fine(id) }, "200 fine"},
		{"a trailer that does not end", func(c *podConn, id uint32) {
			c.head(id, false, ":status: 200")
			c.head(id, false, "a: b")
		}, "error"},
		{"DATA behind the end", func(c *podConn, id uint32) { c.fine(id); c.fr.WriteData(id, true, []byte("more")) }, "200 fine"},
		{"a stream that nobody opened", func(c *podConn, id uint32) { c.fine(id + 2) }, "502"},
		{"a stream of its own", func(c *podConn, id uint32) { c.fine(2) }, "502"},
		{"a push", func(c *podConn, id uint32) {
			c.fr.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true})
		}, "502"},
		{"garbage", func(c *podConn, id uint32) { io.WriteString(c.Conn, strings.Repeat("HTTP/1.1 200 OK\r\n", 10)) }, "502"},
		{"broken fields", func(c *podConn, id uint32) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}})
		}, "502"},
		{"too much DATA", func(c *podConn, id uint32) {
			c.head(id, false, ":status: 200")
			for range 100 {
				c.fr.WriteData(id, false, make([]byte, 16<<10))
			}
		}, "error"},
		{"reset", func(c *podConn, id uint32) { c.fr.WriteRSTStream(id, http2.ErrCodeInternal) }, "502"},
		{"reset in the middle", func(c *podConn, id uint32) {
			c.head(id, false, ":status: 200")
			c.fr.WriteRSTStream(id, http2.ErrCodeEnhanceYourCalm)
		}, "error: the stream was reset with error 11"},
		{"refused", func(c *podConn, id uint32) { c.fr.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, "200 fine"},
		{"cut short", func(c *podConn, id uint32) { c.head(id, false, ":status: 200"); c.Close() }, "error: " + upstream.ErrTruncated.Error()},
		{"nothing", func(c *podConn, id uint32) { c.Close() }, "502"},
		{"GOAWAY before it looked", func(c *podConn, id uint32) { c.fr.WriteGoAway(id-1, 0, nil) }, "200 fine"},
		{"GOAWAY in the middle", func(c *podConn, id uint32) {
			c.head(id, false, ":status: 200")
			c.fr.WriteGoAway(id, 0, nil)
			c.fr.WriteData(id, true, []byte("fine"))
		}, "200 fine"},
		{"settings flood", many(5000, func(c *podConn, id uint32) { c.fr.WriteSettings() }), "502"},
		{"ping flood", many(5000, func(c *podConn, id uint32) { c.fr.WritePing(false, [8]byte{}) }), "502"},
		{"window flood", many(5000, func(c *podConn, id uint32) { c.fr.WriteWindowUpdate(0, 1) }), "502"},
		{"empty DATA", func(c *podConn, id uint32) {
			c.head(id, false, ":status: 200")
			for range 5000 {
				c.fr.WriteData(id, false, nil)
			}
		}, "error"},
		{"CONTINUATION without end", func(c *podConn, id uint32) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x88}})
			for range 100 {
				c.fr.WriteContinuation(id, false, nil)
			}
		}, "502"},
		{"an overflowing window", func(c *podConn, id uint32) { c.fr.WriteWindowUpdate(0, 1<<31-1) }, "502"},
	}
}

// A pod's limit is kept, by as many connections as it takes, and no more than we
// allow: who comes then is told at once.
func TestStreamLimit(t *testing.T) {
	const limit, most = 3, 4
	release := make(chan struct{})
	arrived := make(chan struct{}, 100)
	var worst atomic.Int64
	p := playFrames(t, podScript{
		settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: limit}},
		answer: func(c *podConn, id uint32) {
			worst.Store(max(worst.Load(), int64(c.nth)))
			arrived <- struct{}{}
			if c.nth == limit {
				<-release
				for i := uint32(0); i < limit; i++ {
					c.fine(id - 2*i)
				}
				c.nth = 0
			}
		},
	})
	_, b := newHTTP2Engine(t, upstream.Options{MaxShared: most})
	b.SetEndpoints(endpoints(p.addr))
	results := make(chan string, limit*most)
	for range limit * most {
		go func() {
			status, body := forward(b, "GET", "")
			results <- fmt.Sprint(status, body)
		}()
	}
	for range limit * most {
		<-arrived
	}
	if status, body := forward(b, "GET", ""); status != 503 {
		t.Errorf("one too many: %d %q", status, body)
	}
	close(release)
	for range limit * most {
		if got := <-results; got != "200fine" {
			t.Errorf("got %q", got)
		}
	}
	if n := p.conns.Load(); n != most {
		t.Errorf("%d connections, want %d", n, most)
	}
	if worst.Load() > limit {
		t.Errorf("%d streams at once, want %d", worst.Load(), limit)
	}
}

// A pod that takes no request at all is asked a few times, and no more.
func TestNoStreams(t *testing.T) {
	p := playFrames(t, podScript{settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 0}}})
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	if status, body := forward(b, "GET", ""); status != 503 || p.conns.Load() > 4 {
		t.Errorf("%d %q over %d connections", status, body, p.conns.Load())
	}
}

// A pod that measures the line by pings while it is sent to, as grpc-go does, is not
// taken for a flood.
func TestPingsWhileSending(t *testing.T) {
	const size = 100 << 20 / 16
	p := playFrames(t, podScript{each: func(c *podConn, n int) {
		c.fr.WritePing(false, [8]byte{1})
		if n > 0 {
			c.fr.WriteWindowUpdate(0, uint32(n))
			c.fr.WriteWindowUpdate(c.last, uint32(n))
		}
	}, answer: (*podConn).fine})
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	ex := &exchange.Exchange{}
	for range 10 { // 4,000 pings
		request(ex, "POST", "/")
		ex.Request.Body, ex.Request.Length = io.NopCloser(io.LimitReader(zeros{}, size)), -1
		b.Forward(ex)
		if ex.Response.Status != 200 {
			t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
		}
		ex.Response.Body.Close()
	}
	if n := p.conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Requests at once share connections, those that come while one is made too.
func TestCoalescing(t *testing.T) {
	p := playFrames(t, fineScript())
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	var asking sync.WaitGroup
	for range 90 {
		asking.Go(func() {
			for range 5 {
				if status, body := forward(b, "GET", ""); status != 200 || body != "fine" {
					t.Errorf("%d %q", status, body)
				}
			}
		})
	}
	asking.Wait()
	if n := p.conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// A client that does not read holds up its own stream: no more than the window is
// taken from the pod for it, and others are served over the same connection.
func TestSlowReader(t *testing.T) {
	stuck := make(chan struct{})
	p := playFrames(t, is(func(c *podConn, id uint32) {
		if c.nth > 1 {
			c.fine(id)
			return
		}
		c.head(id, false, ":status: 200")
		for range 16 { // the window of a stream
			c.fr.WriteData(id, false, make([]byte, 16<<10))
		}
		close(stuck)
	}))
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	slow := &exchange.Exchange{}
	request(slow, "GET", "/slow")
	b.Forward(slow)
	if slow.Response.Status != 200 {
		t.Fatal(slow.Response.Status)
	}
	<-stuck
	for range 20 {
		if status, body := forward(b, "GET", ""); status != 200 || body != "fine" {
			t.Fatalf("%d %q", status, body)
		}
	}
	slow.Response.Body.Close()
	if status, _ := forward(b, "GET", ""); status != 200 || p.conns.Load() != 1 {
		t.Errorf("then: %d over %d connections", status, p.conns.Load())
	}
}

// trickle is a request body that ends when it is told to.
type trickle struct {
	io.Reader
	io.Closer
}

// Trailers go both ways, and a pod that ends early is believed.
func TestTrailersOverHTTP2(t *testing.T) {
	p := playFrames(t, is(func(c *podConn, id uint32) {
		c.head(id, false, ":status: 200")
		c.fr.WriteData(id, false, []byte("fine"))
		c.head(id, true, "grpc-status: 0", "x-sum: 1")
	}))
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	r, w := io.Pipe()
	go func() { w.Write([]byte("hello")); w.CloseWithError(io.EOF) }()
	ex := &exchange.Exchange{}
	request(ex, "POST", "/")
	ex.Request.Body, ex.Request.Length = trickle{r, r}, -1
	ex.Request.Trailer.Add([]byte("x-late"), []byte("yes"))
	b.Forward(ex)
	if ex.Response.Status != 200 {
		t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
	}
	body, err := io.ReadAll(ex.Response.Body)
	if err != nil || string(body) != "fine" {
		t.Errorf("%q, %v", body, err)
	}
	h := &ex.Response.Trailer.Header
	if string(h.Get("grpc-status")) != "0" || string(h.Get("x-sum")) != "1" {
		t.Errorf("trailer %q", h.Fields())
	}
	ex.Response.Body.Close()
}

// A request's body that its client breaks off never looks whole to the pod.
func TestUploadBrokenOff(t *testing.T) {
	ended := make(chan struct{}, 1)
	p := playFrames(t, is(func(*podConn, uint32) { ended <- struct{}{} }))
	_, b := newHTTP2Engine(t, upstream.Options{})
	b.SetEndpoints(endpoints(p.addr))
	r, w := io.Pipe()
	go func() { w.Write([]byte("half")); w.CloseWithError(errors.New("gone")) }()
	ex := &exchange.Exchange{}
	request(ex, "POST", "/")
	ex.Request.Body, ex.Request.Length = trickle{r, r}, -1
	b.Forward(ex)
	if ex.Response.Status != 400 {
		t.Errorf("%d %s", ex.Response.Status, ex.Response.Text)
	}
	select {
	case <-ended:
		t.Error("the pod saw the end of the request")
	default:
	}
}
