package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// stream is a connection that stays open and in use: a byte each 20 ms, which
// the pod at its other end sends back.
type stream struct {
	node string // whose pod
	conn net.Conn
	stop chan struct{}
	done chan error
}

// openStream opens one to a pod of the lab.
func openStream(t *testing.T, from *lab.Client, target string) *stream {
	t.Helper()
	conn, err := from.Dial(t.Context(), "tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // close may have been called
	if err := conn.SetDeadline(time.Now().Add(settle)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s does not switch to echo: %+v, %v", target, resp, err)
	}
	s := &stream{node: resp.Header.Get("X-Node"), conn: conn, stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { s.done <- s.talk(in) }()
	return s
}

func (s *stream) talk(in *bufio.Reader) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := byte(0); ; n++ {
		select {
		case <-s.stop:
			return nil
		case <-tick.C:
		}
		// Two seconds bridge a lost packet or two, never a move.
		if err := s.conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
			return err
		}
		if _, err := s.conn.Write([]byte{n}); err != nil {
			return err
		}
		back, err := in.ReadByte()
		if err == nil && back != n {
			err = fmt.Errorf("%d came back for %d", back, n)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
}

// close ends the stream and returns what went wrong while it was open.
func (s *stream) close() error {
	close(s.stop)
	err := <-s.done
	_ = s.conn.Close() // all was echoed
	return err
}
