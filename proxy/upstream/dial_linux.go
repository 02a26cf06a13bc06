//go:build !portable

package upstream

import (
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// begin returns what begins to connect before net.Dialer does, or nil. A pod on this node
// has answered when that returns: the dialler then finds a connection, where it would
// else wait for its turn in the poller, which comes last where there is much to do. A pod
// elsewhere is waited for as ever.
func begin(to netip.AddrPort) func(network, address string, c syscall.RawConn) error {
	at := sockaddr(to)
	if at == nil {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.Connect(int(fd), at) }); e != nil {
			return e
		}
		if err == unix.EINPROGRESS {
			return nil
		}
		return os.NewSyscallError("connect", err)
	}
}

func sockaddr(to netip.AddrPort) unix.Sockaddr {
	switch addr := to.Addr(); {
	case addr.Is4():
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: addr.As4()}
	case addr.Is6() && addr.Zone() == "" && !addr.Is4In6():
		return &unix.SockaddrInet6{Port: int(to.Port()), Addr: addr.As16()}
	}
	return nil
}
