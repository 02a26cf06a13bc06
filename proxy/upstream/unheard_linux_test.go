//go:build !portable

package upstream

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/proxy/socket"
)

// closingPod is one that closes its first connection when it is told to, or as soon as
// it has read the second request there.
type closingPod struct {
	addr     netip.AddrPort
	first    net.Conn
	heard    bool
	requests chan string // method and body of each, but for the first
	pieces   chan string // of bodies, as they come
}

func startClosingPod(t *testing.T, heard bool) *closingPod {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &closingPod{
		addr: netip.MustParseAddrPort(l.Addr().String()), heard: heard,
		requests: make(chan string, 8), pieces: make(chan string, 64),
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			first := p.first == nil
			if first {
				p.first = c // told to the test by the answer
			}
			serving.Go(func() { p.serve(c, first) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return p
}

func (p *closingPod) serve(c net.Conn, first bool) {
	defer c.Close()
	r := bufio.NewReader(c)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if first && n == 1 && p.heard {
			p.requests <- req.Method
			return
		}
		body := make([]byte, 0, 64)
		for err == nil {
			var got int
			got, err = req.Body.Read(body[len(body):cap(body)])
			if got > 0 {
				p.pieces <- string(body[len(body) : len(body)+got])
			}
			body = body[:len(body)+got]
		}
		if err != io.EOF {
			return
		}
		if !first {
			p.requests <- req.Method + " " + string(body)
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

// closeUnderway makes the first connection, and has the pod close it between the next
// request's look at it and the write: the end is on its way while the request is.
func (p *closingPod) closeUnderway(t *testing.T, b *Backend) {
	t.Helper()
	p.warm(t, b)
	c := b.state.Load().endpoints[0].idle[0]
	c.drained = false // it is looked at
	c.plain.step = func(fd uintptr) bool {
		if c.plain.phase == checking {
			if socket.Come(fd) {
				t.Error("the connection is closed already")
			}
			c.plain.phase = sending
			p.first.Close()
			for !socket.Come(fd) {
				time.Sleep(time.Millisecond)
			}
		}
		return c.do(fd)
	}
}

// warm makes the first connection.
func (p *closingPod) warm(t *testing.T, b *Backend) {
	t.Helper()
	ex := &exchange.Exchange{}
	ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("GET"), []byte("/"), []byte("web")
	if got := finish(b, ex); got != 200 {
		t.Fatalf("the first request got %d %s", got, ex.Response.Text)
	}
}

func finish(b *Backend, ex *exchange.Exchange) int {
	b.Forward(ex)
	if ex.Response.Body != nil {
		io.Copy(io.Discard, ex.Response.Body)
		ex.Response.Body.Close()
	}
	return ex.Response.Status
}

func backendOf(t *testing.T, p *closingPod) *Backend {
	b := New(Options{}).Backend(route.Backend{Service: snapshot.Key{Namespace: "default", Name: "web"}})
	b.SetEndpoints(&balance.Set{Endpoints: []balance.Endpoint{{Addr: p.addr, Health: &balance.Health{}}}})
	t.Cleanup(b.retire)
	return b
}

// A request body in memory, and one that may be read again.
type (
	inMemoryBody struct{ *strings.Reader }
	gathered     struct{ *strings.Reader }
)

func (inMemoryBody) Close() error { return nil }
func (gathered) Close() error     { return nil }

func (m inMemoryBody) Whole() ([]byte, bool) { return []byte("text"), true }

func (g gathered) Rewind() bool {
	_, err := g.Seek(0, io.SeekStart)
	return err == nil
}

// A request that a pod cannot have read, for it was just closing the connection, is
// sent again whatever its method.
func TestUnheardRequestIsSentAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		body io.ReadCloser
		want string
	}{
		{"no body", nil, "POST "},
		{"in memory", inMemoryBody{strings.NewReader("text")}, "POST text"},
		{"gathered", gathered{strings.NewReader("text")}, "POST text"},
		{"streamed", io.NopCloser(strings.NewReader("text")), "POST text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startClosingPod(t, false)
			b := backendOf(t, p)
			p.closeUnderway(t, b)
			ex := &exchange.Exchange{}
			ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("POST"), []byte("/"), []byte("web")
			if c.body != nil {
				ex.Request.Body, ex.Request.Length = c.body, 4
			}
			if got := finish(b, ex); got != 200 || len(ex.Upstream.Tries) != 1 {
				t.Fatalf("got %d %s, %d tries", got, ex.Response.Text, len(ex.Upstream.Tries))
			}
			if got := <-p.requests; got != c.want || len(p.requests) > 0 {
				t.Errorf("the pod read %q and %d more, want %q", got, len(p.requests), c.want)
			}
		})
	}
}

// A connection that was used just now is not looked at, but for what can be sent only once.
// If its pod has closed it all the same, that is found out by what is sent there, and costs
// no try.
func TestQuietConnectionThatIsClosed(t *testing.T) {
	for method, looks := range map[string]bool{"GET": false, "POST": true} {
		p := startClosingPod(t, false)
		b := backendOf(t, p)
		p.warm(t, b)
		c := b.state.Load().endpoints[0].idle[0]
		p.first.Close()
		for !c.stale() {
			time.Sleep(time.Millisecond)
		}
		looked := false
		c.plain.step = func(fd uintptr) bool {
			looked = looked || c.plain.phase == checking
			return c.do(fd)
		}
		ex := &exchange.Exchange{}
		ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte(method), []byte("/"), []byte("web")
		c.idleSince = time.Now().Add(time.Hour)
		if got := finish(b, ex); got != 200 || len(ex.Upstream.Tries) != 1 || looked != looks {
			t.Errorf("%s: got %d %s, %d tries, looked: %v", method, got, ex.Response.Text, len(ex.Upstream.Tries), looked)
		}
		if got := <-p.requests; got != method+" " {
			t.Errorf("%s: the pod read %q", method, got)
		}
	}
}

// What is left in the socket, or may be, is never taken for the answer to another request.
func TestWhatIsLeftIsLookedAt(t *testing.T) {
	for _, c := range []struct {
		name    string
		drained bool
		ago     time.Duration
		want    bool
	}{
		{"just now", true, 0, true},
		{"a while ago", true, quietFor, false},
		{"its last read found all that there was room for", false, 0, false},
	} {
		e := newEndpoint(netip.MustParseAddrPort("127.0.0.1:1"), nil)
		now := time.Now()
		e.idle = []*conn{{endpoint: e, born: now, idleSince: now.Add(-c.ago), drained: c.drained}}
		o := Options{}.withDefaults()
		if got := e.take(now, &o).quiet; got != c.want {
			t.Errorf("%s: quiet is %v", c.name, got)
		}
	}
}

// It is sent at once, though the client pauses within its body; what had come by then
// and what comes later arrives once.
func TestUnheardUploadIsSentAgainWhileItsClientPauses(t *testing.T) {
	for _, length := range []int64{-1, 4} {
		for _, before := range []string{"", "ab"} { // what the client sends first
			p := startClosingPod(t, false)
			b := backendOf(t, p)
			p.closeUnderway(t, b)
			r, w := io.Pipe()
			ex := &exchange.Exchange{}
			ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("POST"), []byte("/"), []byte("web")
			ex.Request.Body, ex.Request.Length = r, length
			t.Cleanup(func() { w.Close() })
			done := make(chan int, 1)
			go func() { done <- finish(b, ex) }()
			rest := "abcd"[len(before):]
			for _, piece := range []string{before, rest} {
				if piece == "" {
					continue
				}
				io.WriteString(w, piece)
				select {
				case got := <-p.pieces:
					if got != piece {
						t.Fatalf("length %d: %q came, want %q", length, got, piece)
					}
				case got := <-done:
					t.Fatalf("length %d: got %d %s", length, got, ex.Response.Text)
				case <-time.After(30 * time.Second):
					t.Fatalf("length %d: %q has not come", length, piece)
				}
			}
			w.Close()
			if got := <-done; got != 200 {
				t.Errorf("length %d: got %d %s", length, got, ex.Response.Text)
			}
			if got := <-p.requests; got != "POST abcd" || len(p.requests) > 0 {
				t.Errorf("length %d: the pod read %q and %d more", length, got, len(p.requests))
			}
		}
	}
}

// One that the pod may have read is not: the client is told, though it pauses.
func TestHeardRequestIsNotSentAgain(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		p := startClosingPod(t, true)
		b := backendOf(t, p)
		p.warm(t, b)
		ex := &exchange.Exchange{}
		ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("POST"), []byte("/"), []byte("web")
		if streamed {
			silent, w := io.Pipe()
			defer w.Close()
			ex.Request.Body, ex.Request.Length = silent, 4
		}
		if got := finish(b, ex); got != 502 || ex.Response.Close != streamed {
			t.Errorf("streamed %v: got %d %s, Close %v", streamed, got, ex.Response.Text, ex.Response.Close)
		}
		if got := <-p.requests; got != "POST" || len(p.requests) > 0 {
			t.Errorf("streamed %v: the pod read %q and %d more", streamed, got, len(p.requests))
		}
	}
}
