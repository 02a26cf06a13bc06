package rtadv

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"go.uber.org/goleak"
	"golang.org/x/net/ipv6"

	"quayside.io/test/netns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inNamespace runs the calling test in a network of its own with a cable: its ends
// are a and b, with the link-local addresses fe80::a and fe80::b.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if !netns.Inside(t, time.Minute) {
		return false
	}
	netns.Sh(t, "ip link set lo up")
	cable(t, "fe80::b")
	return true
}

// cable makes one whose end b has that address.
func cable(t *testing.T, b string) {
	t.Helper()
	netns.Sh(t, `ip link add name a type veth peer name b
		for i in a b; do
			echo 1 >/proc/sys/net/ipv6/conf/$i/addr_gen_mode; echo 0 >/proc/sys/net/ipv6/conf/$i/accept_ra
		done
		ip addr add fe80::a/64 dev a nodad; ip addr add `+b+`/64 dev b nodad
		ip link set dev a up; ip link set dev b up`)
}

func start(t *testing.T, interfaces ...string) *Finder {
	t.Helper()
	f := New(Options{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	f.Set(interfaces)
	return f
}

// await waits until a link is as said.
func (f *Finder) await(t *testing.T, name, what string, is func(Link) bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		l, known := f.State()[name]
		if known && is(l) {
			return
		}
		select {
		case <-f.Watch():
		case <-late:
			t.Fatalf("interface %s: not %s: %+v", name, what, l)
		}
	}
}

func to(router string) func(Link) bool {
	return func(l Link) bool { return l.Router.IsValid() && l.Router.String() == router }
}

// Two ends find each other, also when the interface is made anew and leads to
// somebody else.
func TestBothEndsFindEachOther(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	a, b := start(t, "a"), start(t, "b")
	a.await(t, "a", "led to b", to("fe80::b%a"))
	b.await(t, "b", "led to a", to("fe80::a%b"))
	if l := a.State()["a"]; l.Own.String() != "fe80::a" || l.Problem != "" {
		t.Errorf("%+v", l)
	}
	netns.Sh(t, "ip link del dev a")
	a.await(t, "a", "missing", func(l Link) bool { return l.Problem != "" })
	cable(t, "fe80::c")
	a.await(t, "a", "led to the new one", to("fe80::c%a"))
	b.await(t, "b", "led to a", to("fe80::a%b"))
	a.Set(nil)
	for _, known := a.State()["a"]; known; _, known = a.State()["a"] {
		<-a.Watch()
	}
}

func TestAnInterfaceThatIsNotThereIsTold(t *testing.T) {
	f := start(t, "no-such-one")
	f.await(t, "no-such-one", "told", func(l Link) bool { return l.Problem != "" && !l.Router.IsValid() })
}

// stranger sends what it likes at the end b of the cable.
type stranger struct {
	*ndp.Conn
	t *testing.T
}

func newStranger(t *testing.T, from string) stranger {
	t.Helper()
	i, err := net.InterfaceByName("b")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := ndp.Listen(i, ndp.Addr(from))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return stranger{c, t}
}

func (s stranger) advertises() {
	s.t.Helper()
	if err := s.WriteTo(&ndp.RouterAdvertisement{}, nil, allNodes()); err != nil {
		s.t.Fatal(err)
	}
}

// What was passed on by a router, which anybody can send from afar, finds nobody.
// A flood of advertisements neither takes over nor is worked on for long, and what
// is said to the first router goes on.
func TestStrangersOnTheLink(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	netns.Sh(t, "for i in $(seq 16 40); do ip addr add fe80::$i/64 dev b nodad; done")
	f := start(t, "a")
	f.await(t, "a", "listening", func(l Link) bool { return l.Own.IsValid() })
	far := newStranger(t, "fe80::b")
	for range 3 {
		if err := far.WriteTo(&ndp.RouterAdvertisement{}, &ipv6.ControlMessage{HopLimit: 254}, allNodes()); err != nil {
			t.Fatal(err)
		}
	}
	newStranger(t, "fe80::16").advertises()
	f.await(t, "a", "led to the first that counts", to("fe80::16%a"))
	var others []stranger
	for n := 17; n <= 40; n++ {
		others = append(others, newStranger(t, fmt.Sprintf("fe80::%d", n)))
	}
	for range 400 {
		for _, o := range others {
			o.advertises()
		}
	}
	f.await(t, "a", "told of others", func(l Link) bool { return l.Problem != "" })
	if l := f.State()["a"]; l.Router.String() != "fe80::16%a" {
		t.Errorf("a stranger took over: %+v", l)
	}
}
