package l2

import (
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/test/netns"
)

func TestWhoMayNotSpeakIsTold(t *testing.T) {
	if os.Geteuid() == 0 {
		if err := Permitted(); err != nil {
			t.Errorf("root is told %v", err)
		}
	}
	netns.Without(t, unix.CAP_NET_RAW, func() {
		if err := Permitted(); err == nil || !strings.Contains(err.Error(), "NET_RAW") {
			t.Errorf("told %v, want what it needs", err)
		}
	})
}

// An interface that fails is told as long as it does; one that has gone does not
// fail.
func TestAnInterfaceThatFailsIsTold(t *testing.T) {
	a := New(Options{Log: slog.New(slog.DiscardHandler)})
	l := link{index: 1 << 30, mac: self, arp: true}
	l.Name = "lan0"
	key := responderKey{l.index, l.mac, l.Name}
	a.responders[key] = newResponder(key, l, &counters{}, &counters{}, a.raw)
	tell := func(addresses ...netip.Addr) []string {
		select {
		case <-a.Watch():
		default:
		}
		a.Set(wantAddresses(addresses...))
		a.apply(time.Now())
		select {
		case <-a.Watch():
			return a.Failures()
		default:
			return nil
		}
	}
	if os.Geteuid() == 0 {
		if told := tell(vip4.Next()); told != nil {
			t.Errorf("told of an interface that is not there: %q", told)
		}
	}
	netns.Without(t, unix.CAP_NET_RAW, func() { failing(t, tell) })
	if told := tell(); told == nil || len(told) > 0 {
		t.Errorf("told %q, want that nothing fails any more", told)
	}
}

func failing(t *testing.T, tell func(...netip.Addr) []string) {
	t.Helper()
	if told := tell(vip4); len(told) != 1 || !strings.HasPrefix(told[0], "interface lan0 cannot answer") {
		t.Errorf("told %q", told)
	}
	if told := tell(vip4); told != nil {
		t.Errorf("told again: %q", told)
	}
}
