package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// drip is a body that comes byte by byte.
type drip struct{ left int }

func (d *drip) Read(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, io.EOF
	}
	p[0] = 'x'
	return 1, nil
}

// upload sends a body of unknown length, or of length.
func upload(b *upstream.Backend, body io.Reader, length int64) *exchange.Exchange {
	ex := &exchange.Exchange{}
	request(ex, "POST", "/")
	ex.Request.Body, ex.Request.Length = closer(body), length
	b.Forward(ex)
	return ex
}

// Small pieces of a body are gathered: a write for each cost a hundred times
// what their bytes cost.
func TestSmallPiecesAreGathered(t *testing.T) {
	const size = 100_000
	chunks, bytesRead := 0, 0
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		for line, _ := r.ReadString('\n'); line != "\r\n" && line != ""; line, _ = r.ReadString('\n') {
		}
		for {
			line, err := r.ReadString('\n')
			if err != nil || line == "0\r\n" {
				break
			}
			chunks++
			data, _ := r.ReadString('\n')
			bytesRead += len(data) - 2
		}
		io.WriteString(c, fine)
	})
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	ex := upload(b, &drip{size}, -1)
	if ex.Response.Status != 200 {
		t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
	}
	ex.Response.Body.Close()
	if bytesRead != size || chunks > size/4 {
		t.Errorf("%d bytes came in %d chunks, want %d in far fewer", bytesRead, chunks, size)
	}
}

// A byte before a pause does not wait for the next.
func TestGatheringDelaysNothing(t *testing.T) {
	arrived := make(chan string, 4)
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		buf := make([]byte, 100)
		for {
			n, err := req.Body.Read(buf)
			if n > 0 {
				arrived <- string(buf[:n])
			}
			if err != nil {
				break
			}
		}
		io.WriteString(c, fine)
	})
	for _, length := range []int64{-1, 6} {
		_, b := newEngine(t, upstream.Options{}) // each a connection of its own: this pod closes them
		b.SetEndpoints(endpoints(s.addr))
		r, w := io.Pipe()
		done := make(chan *exchange.Exchange)
		go func() { done <- upload(b, r, length) }()
		for _, piece := range []string{"ab", "c", "def"} {
			io.WriteString(w, piece)
			select {
			case got := <-arrived:
				if got != piece {
					t.Fatalf("length %d: %q came, want %q", length, got, piece)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("length %d: %q has not come", length, piece)
			}
		}
		w.Close()
		ex := <-done
		if ex.Response.Status != 200 {
			t.Errorf("%d %s", ex.Response.Status, ex.Response.Text)
		}
		ex.Response.Body.Close()
	}
}

// listenSmall listens with a receive buffer that holds next to nothing.
func listenSmall(t *testing.T) net.Listener {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048) })
	}}
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// A pod that answers without having read the request may never read it: the next
// request would wait behind the body of this one.
func TestUnreadBodyIsNotFollowedByARequest(t *testing.T) {
	l := listenSmall(t)
	conns := make(chan net.Conn, 4)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
			io.ReadFull(c, make([]byte, 4))
			io.WriteString(c, fine)
		}
	}()
	e, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(l.Addr().String()))
	ex := upload(b, strings.NewReader(strings.Repeat("x", 12_000)), 12_000)
	if ex.Response.Status != 200 {
		t.Fatalf("%d %s", ex.Response.Status, ex.Response.Text)
	}
	ex.Response.Body.Close()
	if n := metric(t, e, "quayside_http_upstream_connections"); n != 0 {
		t.Errorf("%v connections with an unread body are kept", n)
	}
	(<-conns).Close()
}

// An answer does not wait for a write that nobody reads.
func TestAnswerDoesNotWaitForTheLastWrite(t *testing.T) {
	l := listenSmall(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			io.ReadFull(c, make([]byte, 4))
			time.Sleep(50 * time.Millisecond) // lets the upload come to a stand
			io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
		}
	}()
	_, b := newEngine(t, upstream.Options{SendTimeout: 20 * time.Second})
	b.SetEndpoints(endpoints(l.Addr().String()))
	// The body is read in one piece, so that the write which hangs is the last.
	for _, size := range []int{30_000, 32_000, 64_000, 1 << 20, 4 << 20} {
		start := time.Now()
		ex := upload(b, bytes.NewReader(make([]byte, size)), int64(size))
		if ex.Response.Status != 413 {
			t.Fatalf("%d bytes: %d %s", size, ex.Response.Status, ex.Response.Text)
		}
		ex.Response.Body.Close()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%d bytes: the answer took %s", size, took)
		}
	}
}
