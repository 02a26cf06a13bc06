//go:build !portable

package serve

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/proxy/socket"
)

// acceptOne returns both ends of a connection over an address of a family.
func acceptOne(t *testing.T, address string) (client *net.TCPConn, a *accepted) {
	t.Helper()
	l, err := listen(address, true)
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		t.Skip("no such address here: ", err)
	case err != nil:
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, "hello") // or it would be accepted later
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return c.(*net.TCPConn), s.(*accepted)
}

func TestAcceptedHasAddresses(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		client, a := acceptOne(t, address)
		if got, want := a.RemoteAddr().String(), client.LocalAddr().String(); got != want {
			t.Errorf("the client is %s, want %s", got, want)
		}
		if got, want := a.LocalAddr().String(), client.RemoteAddr().String(); got != want {
			t.Errorf("we are %s, want %s", got, want)
		}
	}
}

// What does not wait is done without the poller, and the descriptor stays open until then
// even if the connection is closed meanwhile: another could have its number.
func TestAcceptedStaysOpenInTurn(t *testing.T) {
	client, a := acceptOne(t, "127.0.0.1:0")
	var got [16]byte
	done, err := a.turn(func(fd uintptr) bool {
		n, err := socket.Receive(fd, got[:])
		if string(got[:n]) != "hello" || err != nil {
			t.Errorf("received %q, %v", got[:n], err)
		}
		if err := a.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		var name syscall.Stat_t
		if err := syscall.Fstat(int(fd), &name); err != nil {
			t.Errorf("the descriptor is closed in turn: %v", err)
		}
		return true
	})
	if !done || err != net.ErrClosed || a.file != nil {
		t.Errorf("the turn is done %v, with %v, and the poller has %v", done, err, a.file)
	}
	client.SetDeadline(time.Now().Add(30 * time.Second))
	if rest, err := io.ReadAll(client); len(rest) != 0 || err != nil {
		t.Errorf("the client has got %q, %v", rest, err)
	}
	if _, err := a.turn(func(uintptr) bool { t.Error("a turn after the end"); return true }); err != net.ErrClosed {
		t.Errorf("a turn after the end: %v", err)
	}
	for name, err := range map[string]error{
		"close": a.Close(), "deadline": a.SetDeadline(time.Time{}), "write": second(a.Write([]byte("x"))), "read": second(a.Read(got[:])),
		"end": a.CloseWrite(), "control": (*acceptedRaw)(a).Control(func(uintptr) { t.Error("control after the end") }),
	} {
		if !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "use of closed network connection") {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
}

func second(_ int, err error) error { return err }

// A deadline counts from when it was set, also if nobody waited then, and who waits for
// longer has the errors of package net.
func TestAcceptedWaits(t *testing.T) {
	client, a := acceptOne(t, "127.0.0.1:0")
	var got [16]byte
	if err := a.SetReadDeadline(time.Now().Add(-time.Second)); err != nil || a.file != nil {
		t.Fatalf("setting a deadline: %v, and the poller has %v", err, a.file)
	}
	_, err := a.Read(got[:])
	if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) || !isSilent(err) {
		t.Errorf("reading too late: %v", err)
	}
	if done, err := a.turn(func(uintptr) bool { t.Error("a turn without the poller, which has it"); return true }); done || err != nil {
		t.Errorf("a turn when somebody has waited: %v, %v", done, err)
	}
	a.SetDeadline(time.Time{})
	if n, err := a.Read(got[:]); string(got[:n]) != "hello" || err != nil {
		t.Errorf("read %q, %v", got[:n], err)
	}
	if n, err := a.Write([]byte("there")); n != 5 || err != nil || a.CloseWrite() != nil {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	if all, err := io.ReadAll(client); string(all) != "there" || err != nil {
		t.Errorf("the client has got %q, %v", all, err)
	}
	ended := make(chan error)
	go func() { ended <- second(a.Read(got[:])) }()
	go func() { ended <- (*acceptedRaw)(a).Read(func(uintptr) bool { return false }) }()
	time.Sleep(10 * time.Millisecond) // or they begin when it is closed, which is no other
	a.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read whose connection is closed: %v", err)
		}
	}
}

// A reset, theirs or ours, is no end in order.
func TestAcceptedIsReset(t *testing.T) {
	client, a := acceptOne(t, "127.0.0.1:0")
	var got [16]byte
	a.SetDeadline(time.Now().Add(30 * time.Second))
	if n, err := a.Read(got[:]); string(got[:n]) != "hello" || err != nil {
		t.Fatalf("read %q, %v", got[:n], err)
	}
	client.SetLinger(0)
	client.Close()
	if _, err := a.Read(got[:]); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reading after a reset: %v", err)
	}
	client, a = acceptOne(t, "127.0.0.1:0")
	if err := a.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	a.Close()
	client.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := client.Read(got[:]); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client, reading after our reset: %v", err)
	}
}

// A listener that is closed says so to who waits for clients.
func TestAcceptorCloses(t *testing.T) {
	l, err := listen("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	l.Close() // before or after the wait has begun
	if err := <-ended; !errors.Is(err, net.ErrClosed) || isPassing(err) {
		t.Errorf("the wait ended with %v", err)
	}
}
