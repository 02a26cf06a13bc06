//go:build !portable

package socket_test

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"quayside.io/proxy/socket"
)

// pair is a connection: what is written to the client arrives at raw.
func pair(t *testing.T) (client *net.TCPConn, raw syscall.RawConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	if raw, err = s.(*net.TCPConn).SyscallConn(); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn), raw
}

// come waits until n bytes are there to be read.
func come(t *testing.T, raw syscall.RawConn, n int) {
	var got [64]byte
	if err := raw.Read(func(fd uintptr) bool {
		k, _, err := syscall.Recvfrom(int(fd), got[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return err == nil && k == n
	}); err != nil {
		t.Fatal(err)
	}
}

func TestSendAndReceive(t *testing.T) {
	client, raw := pair(t)
	raw.Control(func(fd uintptr) {
		if n, err := socket.Receive(fd, make([]byte, 8)); n != 0 || err != syscall.EAGAIN {
			t.Errorf("received %d bytes of nothing, %v", n, err)
		}
		if n, err := socket.Send(fd, nil, 0); n != 0 || err != nil {
			t.Errorf("sent %d bytes of nothing, %v", n, err)
		}
		big := []byte(strings.Repeat("x", 64<<20))
		if n, err := socket.Send(fd, big, 0); n <= 0 || n == len(big) || err != nil {
			t.Errorf("sent %d of %d bytes to who does not read, %v", n, len(big), err)
		}
		if n, err := socket.Send(fd, big, 0); n != 0 || err != syscall.EAGAIN {
			t.Errorf("sent %d bytes where there is no room, %v", n, err)
		}
	})
	io.WriteString(client, "abc")
	come(t, raw, 3)
	raw.Control(func(fd uintptr) {
		b := make([]byte, 8)
		if n, err := socket.Receive(fd, b); string(b[:n]) != "abc" || err != nil {
			t.Errorf("received %q, %v", b[:n], err)
		}
	})
}

func TestSendToNobody(t *testing.T) {
	client, raw := pair(t)
	client.SetLinger(0)
	client.Close()
	var n int
	var err error
	for range 2 { // the reset, and then its consequence; SIGPIPE would end the test
		raw.Read(func(uintptr) bool { return true })
		raw.Control(func(fd uintptr) { n, err = socket.Send(fd, []byte("x"), 0) })
	}
	if n != 0 || err != syscall.EPIPE && err != syscall.ECONNRESET {
		t.Errorf("sent %d bytes, %v", n, err)
	}
}

func TestShut(t *testing.T) {
	client, raw := pair(t)
	raw.Control(func(fd uintptr) {
		socket.Send(fd, []byte("ab"), unix.MSG_MORE)
		socket.Shut(fd, unix.SHUT_WR)
		if n, err := socket.Send(fd, []byte("c"), 0); n != 0 || err != syscall.EPIPE {
			t.Errorf("sent %d bytes behind the end, %v", n, err)
		}
	})
	if got, err := io.ReadAll(client); string(got) != "ab" || err != nil {
		t.Errorf("came %q, %v", got, err)
	}
	io.WriteString(client, "d") // the other direction is open
	come(t, raw, 1)
}

func TestAccept(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(listening uintptr) {
		if _, _, err := socket.Accept(listening); err != syscall.EAGAIN {
			t.Errorf("accepting nobody: %v", err)
		}
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		fd, from, err := socket.Accept(listening)
		if err != nil || from.String() != client.LocalAddr().String() || socket.Name(uintptr(fd)).String() != l.Addr().String() {
			t.Fatalf("accepted %v at %v, %v; want %v at %v", from, socket.Name(uintptr(fd)), err, client.LocalAddr(), l.Addr())
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 || err != nil {
			t.Errorf("children have it: %b, %v", flags, err)
		}
		if socket.Come(uintptr(fd)) {
			t.Error("something has come")
		}
		socket.Close(uintptr(fd))
		if all, err := io.ReadAll(client); len(all) != 0 || err != nil {
			t.Errorf("the client got %q, %v", all, err)
		}
		if !socket.Come(uintptr(fd)) || socket.Name(uintptr(fd)).IsValid() {
			t.Error("the descriptor is open")
		}
	})
}
