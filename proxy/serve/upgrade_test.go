package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

func TestUpgrade(t *testing.T) {
	r := newRig(t, serve.Options{GracePeriod: 50 * time.Millisecond}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		req, _, err := readRequest(in)
		if err != nil || req.Header.Get("Upgrade") != "echo" || req.Header.Get("Connection") != "Upgrade" {
			t.Errorf("the backend was asked %v, %v", req, err)
			return
		}
		// Bytes that come right behind the head belong to the new protocol.
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Accept: 1\r\n\r\nhello ")
		io.Copy(c, in)
	}))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	// So do those that the client sends without waiting for the 101.
	io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\nearly ")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "echo" || resp.Header.Get("Connection") != "Upgrade" || resp.Header.Get("X-Accept") != "1" {
		t.Fatalf("got %+v, %v", resp, err)
	}
	expect := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
			t.Fatalf("got %.100q, %v, want %.100q", got, err, want)
		}
	}
	expect("hello early ")
	for i := range 100 {
		msg := fmt.Sprint("message ", i, strings.Repeat("x", i*500))
		io.WriteString(c, msg)
		expect(msg)
	}
	if n := r.engine.Tunnels(); n != 1 {
		t.Errorf("%d tunnels, want 1", n)
	}
	r.stop() // a drain ends it
	if _, err := in.ReadByte(); err == nil {
		t.Error("the connection outlived the drain")
	}
}

// When one side ends, the other hears of it.
func TestUpgradeEnds(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		readRequest(in)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		all, _ := io.ReadAll(in)
		fmt.Fprintf(c, "you sent %d bytes", len(all))
	}))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n12345")
	c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(got), "you sent 5 bytes") {
		t.Errorf("got %q, %v", got, err)
	}
	for deadline := time.Now().Add(30 * time.Second); r.engine.Tunnels() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the tunnel stays")
		}
	}
}

// A side that lets the other speak and never listens is given up, or it would
// hold both connections for ever: nothing is silent there.
func TestUpgradeNobodyListens(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for _, name := range []string{"the client", "the backend"} {
		t.Run(name, func(t *testing.T) {
			cut := make(chan struct{})
			flood := func(c net.Conn) {
				defer close(cut)
				for b := make([]byte, 64<<10); ; {
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			}
			r := newRig(t, serve.Options{Timeout: time.Second}, upstream.Options{SendTimeout: time.Second}, rawBackend(t, func(conn net.Conn) {
				readRequest(bufio.NewReader(conn))
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				if name == "the client" {
					flood(conn)
				} else {
					<-over
				}
			}))
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 101 {
				t.Fatalf("no tunnel: %v, %v", resp, err)
			}
			if name == "the backend" {
				go flood(conn)
			}
			select {
			case <-cut:
			case <-time.After(10 * time.Second):
				t.Fatal("the tunnel stays although nobody listens at one end")
			}
			for deadline := time.Now().Add(30 * time.Second); r.engine.Tunnels() > 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the tunnel has ended and is counted")
				}
			}
		})
	}
}

// Most upgraded connections are websockets that wait. What one holds meanwhile
// decides how many a node can have.
func TestUpgradeHoldsLittleWhileItWaits(t *testing.T) {
	if racing {
		t.Skip("the race detector holds more than tunnels do")
	}
	const tunnels = 100
	r := newRig(t, serve.Options{GracePeriod: 50 * time.Millisecond}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		readRequest(in)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, in)
	}))
	before := heap()
	for range tunnels {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		// A large message each way leaves nothing behind.
		in := bufio.NewReader(c)
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 101 {
			t.Fatalf("got %v, %v", resp, err)
		}
		message := strings.Repeat("x", 100<<10) + "."
		go io.WriteString(c, message)
		if got, err := in.ReadString('.'); err != nil || got != message {
			t.Fatalf("%d of %d bytes came back, %v", len(got), len(message), err)
		}
	}
	if each := (heap() - before) / tunnels; each > 48<<10 {
		t.Errorf("an idle tunnel holds %d bytes", each)
	} else {
		t.Logf("an idle tunnel holds %d bytes, its client and its backend in this test included", each)
	}
}

// heap is what is reachable; pools give back what they hold in two rounds.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A side that has said all it had to say may go on listening, also behind a load
// balancer that speaks PROXY protocol.
func TestUpgradeHalfEnds(t *testing.T) {
	for _, behindProxy := range []bool{false, true} {
		heard := make(chan string, 1)
		r := newRig(t, serve.Options{ProxyProtocol: behindProxy}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
			in := bufio.NewReader(c)
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nthat is all")
			c.(*net.TCPConn).CloseWrite()
			all, _ := io.ReadAll(in)
			heard <- string(all)
		}))
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if got, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(got), "that is all") {
			t.Errorf("PROXY protocol %v: got %q, %v", behindProxy, got, err)
		}
		io.WriteString(c, "heard")
		c.(*net.TCPConn).CloseWrite()
		if got := <-heard; got != "heard" {
			t.Errorf("PROXY protocol %v: the backend heard %q after its own end", behindProxy, got)
		}
	}
}

// In a tunnel of HTTP/2 a client would ask the backend for what no rule leads to.
func TestUpgradeToHTTP2IsNotOffered(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "asked to upgrade: %q", req.Header["Upgrade"])
	}))
	for offer, passed := range map[string]bool{
		"h2c": false, "H2C": false, "websocket, h2c": false, "h2c-14": false, "websocket": true, "h2": true,
	} {
		got := r.exchange("GET /public HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " + offer + "\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Contains(got, "upgrade: []") == passed {
			t.Errorf("Upgrade: %s was answered %q, want it passed on: %v", offer, got, passed)
		}
	}
}

func TestUpgradeRefusedByTheBackend(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	got := r.exchange("GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /y HTTP/1.1\r\nHost: a\r\n\r\n")
	if strings.Count(got, "HTTP/1.1 200 OK") != 2 {
		t.Errorf("answered %q", got)
	}
}
