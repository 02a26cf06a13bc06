//go:build !portable

package serve_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// tunnelCost is the most memory that a WebSocket may take over which nothing is sent:
// two goroutines with a buffer each, and two descriptors. Both of its ends are in the
// same process.
const tunnelCost = 12 << 10

func TestIdleTunnelsAllocateLittle(t *testing.T) {
	if racing {
		t.Skip("the race detector holds more than connections do")
	}
	const many = 1000
	pods := make(chan net.Conn, many)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		in := bufio.NewReader(nil)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in.Reset(c)
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			pods <- c
		}
	}()
	r := newRig(t, serve.Options{GracePeriod: time.Millisecond}, upstream.Options{}, l.Addr().String())
	in := bufio.NewReader(nil)
	open := func() (client, pod net.Conn) {
		c := r.dial()
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		in.Reset(c)
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		return c, <-pods
	}
	ends := make([]net.Conn, 0, 2*many+2)
	defer func() {
		for _, c := range ends {
			c.Close()
		}
	}()
	client, pod := open()
	ends = append(ends, client, pod)
	before := memory()
	for range many {
		client, pod = open()
		ends = append(ends, client, pod)
	}
	for deadline := time.Now().Add(time.Minute); r.engine.Tunnels() != 1+many; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d tunnels, want %d", r.engine.Tunnels(), 1+many)
		}
	}
	ours := (memory()-before)/many - 2*clientCost
	t.Logf("%d bytes", ours)
	if ours > tunnelCost {
		t.Errorf("an idle tunnel takes %d bytes, want %d at most", ours, tunnelCost)
	}
}
