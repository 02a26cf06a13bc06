package h2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"quayside.io/proxy/exchange"
)

// handlerFunc is a handler, and the observer of what it has handled.
type handlerFunc func(*exchange.Exchange)

type ended struct {
	status int
	broken bool
}

// recorder counts what has ended.
type recorder struct {
	handler handlerFunc
	mu      sync.Mutex
	ended   []ended
}

func (r *recorder) Handle(ex *exchange.Exchange) {
	ex.Observer = r
	if ex.Response.Status == 0 {
		r.handler(ex)
	}
}

func (r *recorder) Finished(ex *exchange.Exchange, broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, ended{ex.Response.Status, broken})
}

func (r *recorder) statuses() []ended {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ended)
}

// echo answers with what it was asked.
func echo(ex *exchange.Exchange) {
	r := &ex.Request
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s host=%s path=%s length=%d", r.Method, r.Target, r.Host, r.Path, r.Length)
	for _, f := range r.Header.Fields() {
		fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if len(body) > 100 {
			body = fmt.Appendf(nil, "%d bytes", len(body))
		}
		fmt.Fprintf(&b, " body=%s", body)
		if err != nil {
			fmt.Fprintf(&b, " error=%v", err)
		}
		for _, f := range r.Trailer.Header.Fields() {
			fmt.Fprintf(&b, " trailer %s=%s", f.Name, f.Value)
		}
	}
	ex.Answer(200, b.String())
}

// rig is a server on loopback.
type rig struct {
	t      testing.TB
	server *Server
	seen   *recorder
	addr   string
}

func newRig(t testing.TB, o Options, h handlerFunc) *rig {
	t.Helper()
	return newRigFor(t, o, nil, h)
}

// newRigFor is newRig with a certificate for some hosts.
func newRigFor(t testing.TB, o Options, covers func(host string) bool, h handlerFunc) *rig {
	t.Helper()
	seen := &recorder{handler: h}
	o.Handler = seen
	r := &rig{t: t, server: New(o), seen: seen}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				conn := &rester{Conn: lingering{nc}}
				conn.serve(r.server, conn, &Peer{Client: netip.MustParseAddr("192.0.2.1"), Covers: covers})
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return r
}

// lingering closes as package serve does: what the client still sends must not
// make the kernel throw away what we said last.
type lingering struct{ net.Conn }

func (l lingering) Close() error {
	if tcp, ok := l.Conn.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		l.SetReadDeadline(time.Now().Add(2 * time.Second))
		io.Copy(io.Discard, l.Conn)
	}
	return l.Conn.Close()
}

// rester is a connection that waits for its client in the goroutine that served it, as package
// serve does in one for all.
type rester struct {
	net.Conn
	again interface{ Resume() }
	first []byte // was read while it rested
}

// serve serves it to its end.
func (r *rester) serve(s *Server, nc net.Conn, p *Peer) {
	s.Serve(nc, p)
	for r.again != nil {
		var first [1]byte
		n, _ := r.Conn.Read(first[:])
		again := r.again
		r.first, r.again = first[:n], nil
		again.Resume()
	}
}

func (r *rester) Read(b []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(b, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}

func (r *rester) Rest(until time.Time, again interface{ Resume() }) bool {
	r.again = again
	return r.SetReadDeadline(until) == nil
}

func (r *rester) Rise() { r.SetReadDeadline(time.Unix(1, 0)) }

// client speaks frames.
type client struct {
	t    testing.TB
	nc   net.Conn
	fr   *http2.Framer
	dec  *hpack.Decoder
	text bytes.Buffer // of fields being encoded
	enc  *hpack.Encoder
}

// raw connects without a word.
func (r *rig) raw() *client {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	c := &client{t: r.t, nc: nc, fr: http2.NewFramer(nc, nc), dec: hpack.NewDecoder(4096, nil)}
	c.fr.AllowIllegalWrites = true
	c.enc = newEncoder(c)
	return c
}

func newEncoder(c *client) *hpack.Encoder { return hpack.NewEncoder(&c.text) }

// dial connects and exchanges settings.
func (r *rig) dial(settings ...http2.Setting) *client {
	r.t.Helper()
	c := r.raw()
	io.WriteString(c.nc, http2.ClientPreface)
	c.fr.WriteSettings(settings...)
	c.fr.WriteSettingsAck()
	for range 3 { // SETTINGS, WINDOW_UPDATE, the acknowledgement
		if _, err := c.fr.ReadFrame(); err != nil {
			r.t.Fatal(err)
		}
	}
	return c
}

// block encodes "name: value" lines; the name of a pseudo field begins with ':'.
func (c *client) block(fields ...string) []byte {
	c.text.Reset()
	for _, f := range fields {
		i := strings.Index(f[1:], ":") + 1
		c.enc.WriteField(hpack.HeaderField{Name: f[:i], Value: strings.TrimPrefix(f[i+1:], " ")})
	}
	return c.text.Bytes()
}

var get = []string{":method: GET", ":scheme: http", ":path: /", ":authority: a.example"}

func with(base []string, more ...string) []string { return append(slices.Clone(base), more...) }

// without returns base without the fields whose names begin so.
func without(base []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(base), func(f string) bool { return strings.HasPrefix(f, name+":") })
}

func (c *client) headers(id uint32, end bool, fields ...string) {
	c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: true, BlockFragment: c.block(fields...)})
}

// outcome reads until something is decided about stream id: "200 body", "RST CODE",
// "GOAWAY CODE", or "closed".
func (c *client) outcome(id uint32) string {
	c.t.Helper()
	var status, body string
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.t.Fatal("nothing happens")
			}
			return "closed"
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			return "GOAWAY " + f.ErrCode.String()
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return "RST " + f.ErrCode.String()
			}
		case *http2.HeadersFrame:
			fields, err := c.dec.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				c.t.Fatal(err)
			}
			if f.StreamID != id {
				continue
			}
			for _, h := range fields {
				if h.Name == ":status" {
					status += h.Value + " "
				} else if status != "" && f.StreamEnded() && body != "" {
					body += " trailer " + h.Name + "=" + h.Value
				}
			}
			if f.StreamEnded() {
				return status + body
			}
		case *http2.DataFrame:
			if f.StreamID == id {
				body += string(f.Data())
				if f.StreamEnded() {
					return status + body
				}
			}
		}
	}
}

// hearOne reads until one byte of stream id has come, and no more at once.
func (c *client) hearOne(id uint32) {
	c.t.Helper()
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			c.dec.DecodeFull(f.HeaderBlockFragment())
		case *http2.DataFrame:
			if f.StreamID == id && len(f.Data()) != 1 {
				c.t.Fatalf("%d bytes went into a window of 1", len(f.Data()))
			}
			if f.StreamID == id {
				return
			}
		}
	}
}

// alive reports whether the connection still serves requests, of which id is free.
func (c *client) alive(id uint32) bool {
	c.headers(id, true, get...)
	return strings.HasPrefix(c.outcome(id), "200 ")
}
