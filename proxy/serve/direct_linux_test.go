//go:build !portable

package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

const simpleRequest = "GET /%v HTTP/1.1\r\nHost: a\r\n\r\n"

// answers reads n responses with a body that names its path.
func answers(t *testing.T, in *bufio.Reader, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("response %d: %v", i, err)
		}
		body, err := io.ReadAll(res.Body)
		if want := fmt.Sprintf("GET /%d ", i); err != nil || res.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Fatalf("response %d: %d %q, %v", i, res.StatusCode, body, err)
		}
	}
}

// numbered is n simple requests.
func numbered(from, to int) string {
	var all strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&all, simpleRequest, i)
	}
	return all.String()
}

// The end of what a client sends is seen while its last request is served, and while
// nothing is, and soon where it came with that request: nobody who half-closes has a
// connection that is open for long.
func TestHalfClose(t *testing.T) {
	come, leave := make(chan bool), make(chan bool)
	r := newRig(t, serve.Options{RestAfter: 200 * time.Millisecond}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/2" {
			come <- true
			<-leave
		}
		echo(w, req)
	}))
	for name, last := range map[string]func(c *net.TCPConn){
		"with the request": func(c *net.TCPConn) { io.WriteString(c, numbered(1, 2)); c.CloseWrite() },
		"after the response": func(c *net.TCPConn) {
			io.WriteString(c, numbered(1, 2))
			time.Sleep(50 * time.Millisecond)
			c.CloseWrite()
		},
		"within":  func(c *net.TCPConn) { io.WriteString(c, numbered(1, 3)); <-come; c.CloseWrite(); close(leave) },
		"at once": func(c *net.TCPConn) { c.CloseWrite() },
	} {
		c := r.dial().(*net.TCPConn)
		c.SetDeadline(time.Now().Add(30 * time.Second))
		in := bufio.NewReader(c)
		io.WriteString(c, numbered(0, 1))
		answers(t, in, 0, 1)
		last(c)
		if rest, err := io.ReadAll(in); err != nil {
			t.Errorf("%s: not closed after %q: %v", name, rest, err)
		} else if n := strings.Count(string(rest), "HTTP/1.1 200"); n != map[string]int{"with the request": 1, "after the response": 1, "within": 2}[name] {
			t.Errorf("%s: %q", name, rest)
		}
		c.Close()
	}
}

// Requests that come in one piece, more than one read takes, and while others are
// served, are answered in their order.
func TestPipelined(t *testing.T) {
	come, leave := make(chan bool, 1), make(chan bool)
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/0" {
			come <- true
			<-leave
		}
		echo(w, req)
	}))
	c := r.dial()
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(c)
	io.WriteString(c, numbered(0, 1))
	<-come
	io.WriteString(c, numbered(1, 3))
	leave <- true
	answers(t, in, 0, 3)
	go io.WriteString(c, numbered(3, 1000))
	answers(t, in, 3, 1000)
}

// A request that is not simple, or comes in pieces, is served like those before and
// behind it.
func TestHandsOver(t *testing.T) {
	r := newRig(t, serve.Options{RestAfter: restAfter}, upstream.Options{}, backend(t, echo))
	for name, request := range map[string][]string{
		"a body":      {"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /"},
		"chunks":      {"POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\n\r\n"},
		"pieces":      {"GET /1 HT", "TP/1.1\r\nHost: a\r\n", "\r\n"},
		"expectation": {"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", "GET /"},
		"a long one":  {"GET /1 HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 9000), strings.Repeat("x", 6000) + "\r\n\r\n"},
	} {
		c := r.dial()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		in := bufio.NewReader(c)
		io.WriteString(c, numbered(0, 1)+request[0])
		for _, piece := range request[1:] {
			time.Sleep(20 * time.Millisecond)
			io.WriteString(c, piece)
		}
		io.WriteString(c, numbered(2, 4))
		for i := 0; i < 4; i++ {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s: response %d: %v", name, i, err)
			}
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode == 100 {
				i--
				continue
			}
			if want := fmt.Sprintf(" /%d host=a", i); res.StatusCode != 200 || !strings.Contains(string(body), want) || i == 1 && request[0][0] == 'P' && !strings.Contains(string(body), `body="GET /"`) {
				t.Fatalf("%s: response %d: %d %q", name, i, res.StatusCode, body)
			}
		}
		r.untilResting(1) // and is simple again when it has rested
		io.WriteString(c, numbered(4, 5))
		answers(t, in, 4, 5)
		c.Close()
	}
}

// A drain ends connections that wait, and in the end those whose request is still being
// answered: neither can hold it up.
func TestDrainEndsDirect(t *testing.T) {
	come, leave := make(chan bool), make(chan bool)
	defer close(leave)
	r := newRig(t, serve.Options{GracePeriod: time.Second}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/1" {
			come <- true
			select {
			case <-leave:
			case <-req.Context().Done():
			}
		}
		echo(w, req)
	}))
	waits, busy := r.dial(), r.dial()
	for _, c := range []net.Conn{waits, busy} {
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, numbered(0, 1))
		answers(t, bufio.NewReader(c), 0, 1)
	}
	io.WriteString(busy, numbered(1, 2))
	<-come
	began := time.Now()
	ended := make(chan time.Duration, 1)
	go func() { waits.Read(make([]byte, 1)); ended <- time.Since(began) }()
	r.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the drain took %v", took)
	}
	if took := <-ended; took > 900*time.Millisecond {
		t.Errorf("a connection that waits ended after %v", took)
	}
	if n, err := busy.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("%d bytes of an answer that never came, %v", n, err)
	}
}
