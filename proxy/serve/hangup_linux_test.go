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

func TestClientThatLeavesEndsItsRequest(t *testing.T) {
	asked, left := make(chan struct{}, 1), make(chan struct{}, 1)
	r := newRig(t, serve.Options{}, upstream.Options{}, rawBackend(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		readRequest(in)
		asked <- struct{}{}
		io.Copy(io.Discard, in)
		left <- struct{}{}
	}))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	c.Close()
	select {
	case <-left:
	case <-time.After(30 * time.Second):
		t.Error("the backend is still being waited for")
	}
}
