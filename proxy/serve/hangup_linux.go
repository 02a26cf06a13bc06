//go:build !portable

package serve

import "golang.org/x/sys/unix"

// poll asks the kernel whether the client has hung up.
func (c *client) poll(fd uintptr) {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(fds[:], 0); n > 0 && err == nil {
		c.gone = fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	}
}
