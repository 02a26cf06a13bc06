//go:build !portable

package upstream

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// descriptor is a socket of the tests' own.
type descriptor int

func (d descriptor) Control(f func(fd uintptr)) error    { f(uintptr(d)); return nil }
func (d descriptor) Read(f func(fd uintptr) bool) error  { panic("not asked for") }
func (d descriptor) Write(f func(fd uintptr) bool) error { panic("not asked for") }

// A pod on this node is connected to by the time that the dialler begins, and one that
// refuses has been asked once.
func TestConnectingBeginsAtOnce(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if host == "::1" && err != nil {
				t.Skipf("this machine has no IPv6: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			to := l.Addr().(*net.TCPAddr).AddrPort()
			fd, err := connectAtOnce(t, to)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := unix.Getpeername(fd); err != nil {
				t.Error(err)
			}
			l.Close()
			fd, err = connectAtOnce(t, to)
			if err == nil { // the kernel tells who asks next
				err = unix.Connect(fd, sockaddr(to))
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("nobody listens: %v", err)
			}
		})
	}
	if begin(netip.MustParseAddrPort("[fe80::1%eth0]:80")) != nil {
		t.Error("a zone has an index that may change")
	}
}

func connectAtOnce(t *testing.T, to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd, begin(to)("tcp", to.String(), descriptor(fd))
}
