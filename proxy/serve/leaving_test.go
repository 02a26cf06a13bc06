package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// A proxy that leaves serves every connection that comes, ends each with its
// first response, and keeps them alive again as soon as it stays.
func TestLeavingEndsConnections(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	two := func(path string) string {
		return r.exchange(strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n", 2))
	}
	for _, leaving := range []bool{false, true, true, false} {
		r.server.SetLeaving(leaving)
		want := 2
		if leaving {
			want = 1
		}
		got := two("/x")
		if n := strings.Count(got, "HTTP/1.1 200 OK"); n != want {
			t.Errorf("leaving %v: %d of two requests on one connection were served, want %d: %q", leaving, n, want, got)
		}
		if closes := strings.Contains(strings.ToLower(got), "connection: close"); closes != leaving {
			t.Errorf("leaving %v: %q", leaving, got)
		}
	}
	r.route() // an answer of the proxy's own
	r.server.SetLeaving(true)
	if got := two("/y"); strings.Count(got, "HTTP/1.1 503") != 1 || !strings.Contains(strings.ToLower(got), "connection: close") {
		t.Errorf("its own answer: %q", got)
	}
}

// An upgraded connection is not told to end: it would not be an upgrade.
func TestLeavingLeavesUpgradesAlone(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		readRequest(in)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := in.ReadString('\n')
		fmt.Fprintf(c, "you sent %s", line)
	}))
	r.server.SetLeaving(true)
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n12345\n")
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(got), "you sent 12345\n") || strings.Contains(strings.ToLower(string(got)), "close") {
		t.Errorf("got %q, %v", got, err)
	}
}
