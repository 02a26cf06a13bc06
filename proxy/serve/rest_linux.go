//go:build !portable

package serve

import (
	"cmp"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// directs: what direct needs is there.
const directs = true

// restPoll is an epoll(7) of the connections that rest. The runtime's poller, which knows
// each of them as well, needs a goroutine for each that waits; of this one it tells a
// single goroutine that somebody has come.
type restPoll struct {
	fd   int
	file *os.File // the same, as the runtime's poller knows it
	raw  syscall.RawConn
}

func newRestPoll() (*restPoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else the poller would not take it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &restPoll{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// run calls awake with the descriptors of those of which something has come, each once,
// until close.
func (p *restPoll) run(awake func(descriptors []int)) {
	var events [64]unix.EpollEvent
	descriptors := make([]int, 0, len(events))
	p.raw.Read(func(uintptr) (done bool) {
		for {
			n, err := unix.EpollWait(p.fd, events[:], 0)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				return false // the poller tells when there is more
			}
			descriptors = descriptors[:0]
			for _, e := range events[:n] {
				descriptors = append(descriptors, int(e.Fd))
			}
			awake(descriptors)
		}
	})
}

// watch adds a connection and returns its descriptor.
func (p *restPoll) watch(c syscall.RawConn) (fd int, err error) {
	return p.control(c, unix.EPOLL_CTL_ADD)
}

// forget takes it out again. To close it does so too.
func (p *restPoll) forget(c syscall.RawConn) { p.control(c, unix.EPOLL_CTL_DEL) }

func (p *restPoll) control(c syscall.RawConn, op int) (fd int, err error) {
	failed := c.Control(func(of uintptr) {
		fd = int(of)
		err = p.change(fd, op)
	})
	return fd, cmp.Or(failed, err)
}

// add adds a connection by its descriptor, and remove takes it out again.
func (p *restPoll) add(fd int) error { return p.change(fd, unix.EPOLL_CTL_ADD) }
func (p *restPoll) remove(fd int)    { p.change(fd, unix.EPOLL_CTL_DEL) }

// change asks the poller for its own descriptor, so that nothing is done to another that has
// it after close.
func (p *restPoll) change(fd, op int) (err error) {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(fd)}
	closed := p.raw.Control(func(poll uintptr) { err = unix.EpollCtl(int(poll), op, fd, &event) })
	return cmp.Or(closed, os.NewSyscallError("epoll_ctl", err))
}

func (p *restPoll) close() { p.file.Close() }
