//go:build !portable

package serve

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// How a client that is gone without a word is found out, in seconds and probes: as
// package net does by default.
const (
	keepAliveIdle  = 15
	keepAliveEvery = 15
	keepAliveCount = 9
)

// listen opens a listening socket. What it says of dead clients its connections
// inherit (tcp(7)): package net would say it of each, in four system calls. For the
// same reason it is not one of Multipath TCP, which nobody asks for here.
func listen(address string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: handDown}
	config.SetMultipathTCP(false)
	return config.Listen(context.Background(), "tcp", address)
}

func handDown(_, _ string, raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		for _, option := range [...]struct{ level, name, value int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepAliveIdle},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAliveEvery},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveCount},
		} {
			if err == nil {
				err = unix.SetsockoptInt(int(fd), option.level, option.name, option.value)
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}
