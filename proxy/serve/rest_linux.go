//go:build !portable

package serve

import "syscall"

// rests: connections can be waited for without reading.
const rests = true

// directs: what direct needs is there.
const directs = true

// come reports whether the next byte, or the end, has come.
func come(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return err != syscall.EAGAIN
		}
	}
}
