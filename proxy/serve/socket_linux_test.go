//go:build !portable

package serve

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What the listening socket was told is true of the connections that it accepts.
func TestConnectionsInheritKeepAlive(t *testing.T) {
	l, err := listen("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name                 string
		level, option, value int
	}{
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepAliveIdle},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAliveEvery},
		{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveCount},
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
	} {
		var got int
		if failed := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), want.level, want.option) }); failed != nil || err != nil || got != want.value {
			t.Errorf("%s is %d, %v, %v; want %d", want.name, got, failed, err, want.value)
		}
	}
}
