package serve_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// A client that connects at the end of a lame duck and speaks only after it is answered:
// by then the kernel keeps no connection back, which closing the socket would reset.
func TestWhoConnectsLastMaySpeakLater(t *testing.T) {
	const lameDuck = 2 * time.Second
	r := newRig(t, serve.Options{GracePeriod: 30 * time.Second, LameDuck: lameDuck}, upstream.Options{}, backend(t, echo))
	began, stopped := time.Now(), make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	time.Sleep(lameDuck * 3 / 4)
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		other, err := net.Dial("tcp", r.addr)
		if err != nil {
			break // no longer listening
		}
		other.Close()
		if time.Since(began) > 10*lameDuck {
			t.Fatal("a draining server goes on accepting")
		}
		time.Sleep(10 * time.Millisecond)
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: web\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || !resp.Close {
		t.Errorf("got %s, close %v", resp.Status, resp.Close)
	}
	<-stopped
}
