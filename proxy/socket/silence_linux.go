//go:build !portable

package socket

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EndSilent has the kernel end a connection whose peer confirms nothing of what it is sent
// for so long (TCP_USER_TIMEOUT, RFC 5482). A peer that has no room for that long is ended,
// too, so it is for short messages.
func EndSilent(raw syscall.RawConn, after time.Duration) (err error) {
	if broken := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	}); broken != nil {
		return broken
	}
	return err
}
