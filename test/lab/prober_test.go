package lab

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReport(t *testing.T) {
	lost := errors.New("lost")
	begin := time.Unix(1000, 0)
	// Attempts each 10 ms: + answered, ~ answered after 30 ms, - failed.
	for _, test := range []struct {
		attempts string
		failed   int
		gap      time.Duration
	}{
		{attempts: ""},
		{attempts: "+"},
		{attempts: "++++"},
		{attempts: "+-+", failed: 1, gap: 10 * time.Millisecond},
		{attempts: "+---+-+", failed: 4, gap: 30 * time.Millisecond},
		{attempts: "++--", failed: 2, gap: 10 * time.Millisecond}, // not over when the probing ended
		{attempts: "--++", failed: 2, gap: 20 * time.Millisecond}, // nothing was up before
		{attempts: "+-~+", failed: 1, gap: 40 * time.Millisecond}, // who came during the outage was answered at its end
	} {
		var attempts []Attempt
		for i := len(test.attempts) - 1; i >= 0; i-- { // they arrive in any order
			a := Attempt{Start: begin.Add(time.Duration(i) * 10 * time.Millisecond)}
			switch test.attempts[i] {
			case '-':
				a.Err = lost
			case '~':
				a.Took = 30 * time.Millisecond
			}
			attempts = append(attempts, a)
		}
		r := report(attempts, 10*time.Millisecond)
		if r.Failed != test.failed || r.Gap != test.gap || len(r.Attempts) != len(test.attempts) {
			t.Errorf("%q: %d attempts, %d failed, gap %v; want %d, %d, %v",
				test.attempts, len(r.Attempts), r.Failed, r.Gap, len(test.attempts), test.failed, test.gap)
		}
	}
}

// A dial that is answered and then reset, before the program asks how it went,
// is no new connection that failed; one that nobody answers is.
func TestADialThatIsResetWasCut(t *testing.T) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	reset := Attempt{Err: lateDial(t, port, func() {
		c, err := l.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetLinger(0)
		_ = c.Close()
	})}
	if !errors.Is(reset.Err, unix.ECONNRESET) || !reset.Cut() {
		t.Errorf("answered and reset: %v, cut: %v", reset.Err, reset.Cut())
	}
	_ = l.Close()
	refused := Attempt{Err: lateDial(t, port, func() {})}
	if !errors.Is(refused.Err, unix.ECONNREFUSED) || refused.Cut() {
		t.Errorf("refused: %v, cut: %v", refused.Err, refused.Cut())
	}
	if (Attempt{}).Cut() {
		t.Error("an attempt that succeeded was cut")
	}
}

// lateDial connects, and asks how that went only when meanwhile is done and the
// socket has news.
func lateDial(t *testing.T, port int, meanwhile func()) error {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil && err != unix.EINPROGRESS {
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)}
	}
	meanwhile()
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); err != nil {
		t.Fatal(err)
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		t.Fatal(err)
	}
	return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", unix.Errno(code))}
}
