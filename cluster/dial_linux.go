//go:build !portable

package cluster

import "golang.org/x/sys/unix"

// breakUnacknowledged breaks a connection whose peer has acknowledged nothing for
// unacknowledgedFor.
func breakUnacknowledged(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledgedFor.Milliseconds()))
}
