package members

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine at a time.
type alarm interface {
	set(at time.Time)
	wait() bool
	close()
}

// timer is a timer descriptor of the kernel, which the poller waits for as it waits for
// sockets. A timer of Go's that expires wakes a second thread, the runtime's monitor, which
// then polls a few times; and a timer that was postponed still wakes both at the old time.
// As in packets, the system calls never block and bypass the scheduler.
type timer struct {
	file  *os.File
	raw   syscall.RawConn
	spec  unix.ItimerSpec
	count uint64 // of expiries, which nobody needs
	// Made once: a closure for each call would escape.
	settime func(fd uintptr)
	read    func(fd uintptr) bool
}

func newTimer() (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer descriptor: %w", err)
	}
	t := &timer{file: os.NewFile(uintptr(fd), "timer")}
	if t.raw, err = t.file.SyscallConn(); err != nil {
		_ = t.file.Close()
		return nil, err
	}
	t.settime = func(fd uintptr) {
		_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&t.spec)), 0, 0, 0)
	}
	t.read = func(fd uintptr) bool {
		for {
			_, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&t.count)), unsafe.Sizeof(t.count))
			if errno != unix.EINTR {
				return errno != unix.EAGAIN
			}
		}
	}
	return t, nil
}

// set makes the timer expire at a time instead of when it was set to before; zero: never.
// It is for one goroutine at a time.
func (t *timer) set(at time.Time) {
	t.spec = unix.ItimerSpec{}
	if !at.IsZero() {
		t.spec.Value = unix.NsecToTimespec(max(1, int64(time.Until(at)))) // 0 would be never
	}
	_ = t.raw.Control(t.settime) // it fails only once the timer is closed
}

// wait waits until the timer expires, and reports whether it did; it returns false once
// the timer is closed.
func (t *timer) wait() bool { return t.raw.Read(t.read) == nil }

func (t *timer) close() { _ = t.file.Close() }

// dropStopped spares this process the wakes for timers of Go's that were stopped just now.
// Each ping of memberlist's has two for its timeout. They stay in the runtime's heap, and
// both its poller and its monitor wake for them, unless another timer is added before:
// that clears the head of the heap.
func dropStopped() { time.AfterFunc(time.Hour, func() {}).Stop() }
