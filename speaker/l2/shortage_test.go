package l2

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// What could not be announced for want of a descriptor is announced as soon as there is one,
// and not only when it would have been repeated.
func TestAnnouncesAfterAShortage(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	_, a := onLAN(t)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	a.Set(wantAddresses(vip4))
	eventually(t, "it is told", func() bool { return strings.Contains(strings.Join(a.Failures(), ""), "too many open files") })
	times := burst()
	time.Sleep(times[len(times)-1] + time.Second/2) // it outlasts the first announcements
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is announced", func() bool { return a.metrics.of("lan0", "ipv4").gratuitous.Load() > 0 })
	eventually(t, "nothing is told any more", func() bool { return len(a.Failures()) == 0 })
}
