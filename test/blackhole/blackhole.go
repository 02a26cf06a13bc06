// Package blackhole makes addresses that take no connection and refuse none, as those of
// pods that hang or are cut off: tests see who waits for how long.
package blackhole

import (
	"fmt"
	"net"
	"syscall"
	"testing"
)

// Listen returns a socket that listens on the loopback with room for one connection that
// nobody accepts, and its address, IP:PORT. It is closed when the test ends.
func Listen(t testing.TB) (fd int, addr string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

// Address is that of a socket which has no room left.
func Address(t testing.TB) string {
	t.Helper()
	_, addr := Listen(t)
	waits, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = waits.Close() })
	return addr
}
