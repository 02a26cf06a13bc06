package upstream_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
)

// slowReader gives a body in pieces.
type slowReader struct {
	pieces []string
	err    error
}

func (r *slowReader) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	if len(r.pieces) == 0 {
		return 0, r.err
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// closer returns r as a body.
func closer(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

func TestUploads(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 50_000)
	var mu sync.Mutex
	var got []string
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, err := io.ReadAll(req.Body)
			mu.Lock()
			got = append(got, fmt.Sprintf("%v %d %v %v", req.TransferEncoding, req.ContentLength, string(body) == big || string(body) == "small", err))
			mu.Unlock()
			io.WriteString(c, fine)
		}
	})
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	for _, c := range []struct {
		name   string
		body   io.Reader
		length int64
		status int
		want   string
	}{
		{"in memory", inMemory("small"), 5, 200, "[] 5 true <nil>"},
		{"in memory, length unknown", inMemory("small"), -1, 200, "[] 5 true <nil>"},
		{"small", strings.NewReader("small"), 5, 200, "[] 5 true <nil>"},
		{"small, length unknown", &slowReader{[]string{"sm", "all"}, io.EOF}, -1, 200, "[chunked] -1 true <nil>"},
		{"large", strings.NewReader(big), int64(len(big)), 200, "[] 800000 true <nil>"},
		{"large, length unknown", strings.NewReader(big), -1, 200, "[chunked] -1 true <nil>"},
		{"the client stops", &slowReader{[]string{"half"}, os.ErrDeadlineExceeded}, 9000, 408, "[] 9000 false unexpected EOF"},
		{"the client stops between chunks", &slowReader{[]string{"half"}, io.ErrUnexpectedEOF}, -1, 400, "[chunked] -1 false unexpected EOF"},
		{"the client sends too little", strings.NewReader("half"), 9000, 400, "[] 9000 false unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mu.Lock()
			got = nil
			mu.Unlock()
			ex := &exchange.Exchange{}
			request(ex, "POST", "/")
			ex.Request.Body, ex.Request.Length = closer(c.body), c.length
			b.Forward(ex)
			if ex.Response.Body != nil {
				ex.Response.Body.Close()
			}
			if ex.Response.Status != c.status {
				t.Errorf("status %d, want %d: %s", ex.Response.Status, c.status, ex.Response.Text)
			}
			if ex.Response.Close != (c.status != 200) {
				t.Errorf("Close is %v", ex.Response.Close)
			}
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
				mu.Lock()
				seen := slices.Clone(got)
				mu.Unlock()
				if len(seen) > 0 {
					if seen[0] != c.want {
						t.Errorf("the upstream read %q, want %q", seen[0], c.want)
					}
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("the upstream read nothing")
				}
			}
		})
	}
}

// blocked is a client that never sends its body, until it is closed.
type blocked struct{ closed chan struct{} }

func (b *blocked) Read([]byte) (int, error) { <-b.closed; return 0, net.ErrClosed }
func (b *blocked) Close() error             { close(b.closed); return nil }

// An upstream may answer before it has read the body: the answer gets through,
// and the client's connection is not used again.
func TestEarlyAnswer(t *testing.T) {
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
		io.Copy(io.Discard, r)
	})
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	ex := &exchange.Exchange{}
	request(ex, "POST", "/")
	body := &blocked{make(chan struct{})}
	ex.Request.Body, ex.Request.Length = body, 1<<20
	b.Forward(ex)
	text, err := io.ReadAll(ex.Response.Body)
	if ex.Response.Status != 413 || string(text) != "no!" || err != nil || !ex.Response.Close {
		t.Errorf("got %d %q %v, Close %v", ex.Response.Status, text, err, ex.Response.Close)
	}
	ex.Response.Body.Close()
	select {
	case <-body.closed:
	default:
		t.Error("the upload goes on after the response was closed")
	}
}

// An upstream that answers while it reads must not be left standing.
func TestBothWaysAtOnce(t *testing.T) {
	const size = 8 << 20
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		io.Copy(c, req.Body)
	})
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	ex := &exchange.Exchange{}
	request(ex, "POST", "/")
	sent := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	ex.Request.Body, ex.Request.Length = io.NopCloser(bytes.NewReader(sent)), size
	b.Forward(ex)
	got, err := io.ReadAll(ex.Response.Body)
	ex.Response.Body.Close()
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// What stands behind a body goes both ways, save what may not stand there.
func TestTrailers(t *testing.T) {
	var asked *http.Request
	s := play(t, func(c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		asked = req
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Grpc-Status\r\n\r\n2\r\nok\r\n0\r\n"+
			"Grpc-Status: 0\r\nContent-Length: 7\r\nnot a field\r\nX-Late:  yes \r\n\r\n")
	})
	_, b := newEngine(t, upstream.Options{})
	b.SetEndpoints(endpoints(s.addr))
	ex := &exchange.Exchange{}
	request(ex, "POST", "/")
	ex.Request.Body, ex.Request.Length = closer(strings.NewReader(strings.Repeat("x", 70_000))), -1
	ex.Request.TakesTrailers = true
	ex.Request.Trailer.Announced = []byte("X-Sum")
	ex.Request.Trailer.Add([]byte("X-Sum"), []byte("12"))
	ex.Request.Trailer.Add([]byte("Host"), []byte("evil"))
	b.Forward(ex)
	io.Copy(io.Discard, ex.Response.Body)
	ex.Response.Body.Close()
	if got := asked.Trailer; len(got) != 1 || got.Get("X-Sum") != "12" || asked.Header.Get("TE") != "trailers" {
		t.Errorf("the upstream was sent the trailer %v and TE %q", got, asked.Header.Get("TE"))
	}
	var got []string
	for _, f := range ex.Response.Trailer.Header.Fields() {
		got = append(got, string(f.Name)+": "+string(f.Value))
	}
	if want := []string{"Grpc-Status: 0", "X-Late: yes"}; !slices.Equal(got, want) || string(ex.Response.Trailer.Announced) != "Grpc-Status" {
		t.Errorf("the response's trailer is %q (announced %q), want %q", got, ex.Response.Trailer.Announced, want)
	}
}
