package upstream

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// A write that finds nothing to send must leave the bytes alone that come in the
// meantime: it once took its stale end of the buffer for what had been sent, so
// that they were skipped, or the next write was out of bounds.
func TestAnEmptyWriteSkipsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	received := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			received <- nil
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c) // what is missing is told below
		received <- all
	}()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConn(client.(*net.TCPConn), nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	g := &gather{conn: c, timeout: 10 * time.Second, buf: make([]byte, 4<<10)}
	stop, flushed := make(chan struct{}), make(chan struct{})
	go func() { // writes without end, nearly all of them empty
		defer close(flushed)
		for {
			select {
			case <-stop:
				return
			default:
				if g.flush() != nil {
					return
				}
			}
		}
	}()
	var want []byte
	for i := range 20_000 {
		room, err := g.room()
		if err != nil {
			t.Fatal(err)
		}
		n := 1 + i%40
		for j := range n {
			room[j] = byte(i + j)
		}
		want = append(want, room[:n]...)
		if err := g.add(n, false); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-flushed
	g.end()
	if err := g.flush(); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if got := <-received; !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived of %d, or others", len(got), len(want))
	}
}
