package streams

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// said is a connection to a pod that says all that it has to say at once, and then
// closes. What it is sent is kept.
type said struct {
	in     *bytes.Reader
	mu     sync.Mutex
	out    bytes.Buffer
	waits  chan struct{} // closed when the request has been opened
	closed chan struct{}
	once   sync.Once
}

func newSaid(b []byte) *said {
	return &said{in: bytes.NewReader(b), waits: make(chan struct{}), closed: make(chan struct{})}
}

// settingsSize is what comes before the request is there to be answered.
const settingsSize = 9

func (s *said) Read(p []byte) (int, error) {
	if s.in.Size()-int64(s.in.Len()) >= settingsSize {
		select {
		case <-s.waits:
		case <-s.closed:
			return 0, net.ErrClosed
		}
	} else {
		p = p[:min(len(p), settingsSize-int(s.in.Size()-int64(s.in.Len())))]
	}
	return s.in.Read(p)
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *said) Close() error                     { s.once.Do(func() { close(s.closed) }); return nil }
func (s *said) LocalAddr() net.Addr              { return nil }
func (s *said) RemoteAddr() net.Addr             { return nil }
func (s *said) SetDeadline(time.Time) error      { return nil }
func (s *said) SetReadDeadline(time.Time) error  { return nil }
func (s *said) SetWriteDeadline(time.Time) error { return nil }

// record returns what a pod's framer writes.
func record(write func(fr *http2.Framer, block func(fields ...string) []byte)) []byte {
	var b, text bytes.Buffer
	fr := http2.NewFramer(&b, nil)
	fr.AllowIllegalWrites = true
	enc := hpack.NewEncoder(&text)
	write(fr, func(fields ...string) []byte {
		text.Reset()
		for _, f := range fields {
			i := strings.Index(f[1:], ":") + 1
			enc.WriteField(hpack.HeaderField{Name: f[:i], Value: f[i+2:]})
		}
		return bytes.Clone(text.Bytes())
	})
	return b.Bytes()
}

func seeds() [][]byte {
	headers := func(fr *http2.Framer, id uint32, end bool, block []byte) {
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: true, BlockFragment: block})
	}
	return [][]byte{
		record(func(fr *http2.Framer, block func(...string) []byte) {
			headers(fr, 1, false, block(":status: 200", "content-length: 4"))
			fr.WriteData(1, true, []byte("fine"))
		}),
		record(func(fr *http2.Framer, block func(...string) []byte) {
			headers(fr, 1, false, block(":status: 103", "link: x"))
			headers(fr, 1, false, block(":status: 200"))
			fr.WriteDataPadded(1, false, []byte("fine"), make([]byte, 5))
			headers(fr, 1, true, block("grpc-status: 0"))
		}),
		record(func(fr *http2.Framer, block func(...string) []byte) {
			headers(fr, 1, true, block(":status: 200", "grpc-status: 14"))
			headers(fr, 1, true, block("a: b"))
		}),
		record(func(fr *http2.Framer, block func(...string) []byte) {
			fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			fr.WriteWindowUpdate(0, 1<<31-1)
			fr.WriteWindowUpdate(1, 1<<31-1)
			fr.WritePing(false, [8]byte{})
			fr.WriteGoAway(0, http2.ErrCodeNo, nil)
		}),
		record(func(fr *http2.Framer, block func(...string) []byte) {
			fr.WriteRSTStream(1, http2.ErrCodeRefusedStream)
			fr.WriteData(1, false, make([]byte, 1000))
			fr.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}),
		record(func(fr *http2.Framer, block func(...string) []byte) {
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
			fr.WriteContinuation(1, true, block("connection: close"))
		}),
		[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
	}
}

// FuzzPod lets a pod answer one request with whatever bytes: the connection and the
// request end, and leave no goroutine; what we have said are frames; a head is fit to
// be passed on; a body is as long as it says, or an error.
func FuzzPod(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		nc := newSaid(append(frame.AppendSettings(nil), b...))
		c := New(Options{}).Start(nc, false)
		<-c.Ready()
		r := exchange.Request{Method: []byte("POST"), Host: []byte("a.example"), Target: []byte("/"), Body: io.NopCloser(strings.NewReader("")), Length: -1}
		s, err := c.Open(&r, bytes.Repeat([]byte("x"), 100_000), true)
		close(nc.waits)
		if err == nil {
			follow(t, s)
			s.Close()
		}
		c.Close()
		<-c.Done()
		if nc.out.Len() == 0 {
			return // the pod was gone before we had said a word
		}
		fr := http2.NewFramer(nil, bytes.NewReader(nc.out.Bytes()[len(http2.ClientPreface):]))
		for {
			if _, err := fr.ReadFrame(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("we sent what is no frame: %v", err)
			}
		}
	})
}

// follow reads a response to its end.
func follow(t *testing.T, s *Stream) {
	wait := func() {
		select {
		case <-s.Arrived():
		case <-time.After(20 * time.Second):
			t.Fatal("the stream does not end")
		}
	}
	var h exchange.Header
	hd, ok, err := s.Head(&h)
	for ; !ok; hd, ok, err = s.Head(&h) {
		if err != nil {
			return
		}
		wait()
	}
	if hd.Status < 200 || hd.Status > 599 {
		t.Errorf("status %d", hd.Status)
	}
	for _, f := range h.Fields() {
		if !frame.ValidName(string(f.Name)) || !frame.ValidValue(string(f.Value)) || frame.EndsHere(string(f.Name), "") {
			t.Errorf("%q: %q", f.Name, f.Value)
		}
	}
	var size int64
	var buf [1000]byte
	for {
		n, err := s.Read(buf[:])
		size += int64(n)
		switch {
		case err == io.EOF:
			if hd.Length >= 0 && size != hd.Length && hd.Status != 204 && hd.Status != 304 {
				t.Errorf("a body of %d bytes has %d", hd.Length, size)
			}
			return
		case err != nil:
			return
		case n == 0:
			wait()
		}
	}
}

// A pod that grants no window makes the sender of a body fail, and nobody else.
func TestNoWindow(t *testing.T) {
	client, pod := net.Pipe()
	defer pod.Close()
	go io.Copy(io.Discard, pod)
	c := New(Options{}).Start(client, false)
	go pod.Write(frame.AppendSettings(nil, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	<-c.Ready()
	r := exchange.Request{Method: []byte("POST"), Host: []byte("a.example"), Target: []byte("/"), Body: io.NopCloser(strings.NewReader("")), Length: -1}
	s, err := c.Open(&r, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send([]byte("x"), true, nil, 50*time.Millisecond); !errors.Is(err, ErrSilent) {
		t.Errorf("got %v", err)
	}
	s.Close()
	c.Shut()
	<-c.Done()
	if _, err := c.Open(&r, nil, true); !errors.Is(err, ErrClosing) {
		t.Errorf("a connection that is over takes a request: %v", err)
	}
}
