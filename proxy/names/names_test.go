package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"quayside.io/test/dns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run starts a Resolver that asks a server of ours.
func run(t *testing.T, o Options) (*Resolver, *dns.Server) {
	t.Helper()
	server := dns.Start(t)
	o.Dial = server.Dial
	r := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r, server
}

// until waits for changes until ok.
func until(t *testing.T, r *Resolver, what string, ok func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-r.Changed():
		case <-limit:
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

func first(r *Resolver, name string) string {
	a := r.Lookup(name)
	if len(a.Addrs) == 0 {
		return a.Why
	}
	return a.Addrs[0].String()
}

func TestNamesAreFollowed(t *testing.T) {
	r, server := run(t, Options{Least: 10 * time.Millisecond})
	server.Set("a.test.", 0, "192.0.2.2", "192.0.2.1", "2001:db8::1")
	r.Set([]string{"a.test", "b.test"})
	until(t, r, "a.test is known", func() bool { return len(r.Lookup("a.test").Addrs) == 3 })
	if got := r.Lookup("a.test").Addrs; got[0] != netip.MustParseAddr("192.0.2.1") || got[2] != netip.MustParseAddr("2001:db8::1") {
		t.Errorf("%v", got)
	}
	until(t, r, "b.test is not there", func() bool { return first(r, "b.test") == "b.test has no address in DNS" })
	server.Set("a.test.", 0, "192.0.2.9")
	until(t, r, "a.test has moved", func() bool { return first(r, "a.test") == "192.0.2.9" })
	server.Set("b.test.", 0, "192.0.2.7")
	until(t, r, "b.test has come", func() bool { return first(r, "b.test") == "192.0.2.7" })
	r.Set([]string{"b.test"})
	if a := r.Lookup("a.test"); len(a.Addrs) > 0 {
		t.Errorf("a.test is still known: %v", a)
	}
}

// An answer is kept for its time to live, whoever asks.
func TestTimeToLive(t *testing.T) {
	r, server := run(t, Options{})
	server.Set("long.test.", 300, "192.0.2.1")
	server.Set("short.test.", 1, "192.0.2.1")
	r.Set([]string{"long.test", "short.test"})
	until(t, r, "both are known", func() bool { return first(r, "long.test") == "192.0.2.1" && first(r, "short.test") == "192.0.2.1" })
	for deadline := time.Now().Add(30 * time.Second); server.Asked("short.test.") < 6; time.Sleep(10 * time.Millisecond) { // A and AAAA each time
		if time.Now().After(deadline) {
			t.Fatal("what lives for a second is not asked for again")
		}
	}
	if n := server.Asked("long.test."); n != 2 {
		t.Errorf("what lives for five minutes was asked for by %d questions, want 2", n)
	}
}

func TestNamesAreBounded(t *testing.T) {
	r := New(Options{Max: 2})
	r.Set([]string{"c.test", "b.test", "a.test", "a.test"})
	if w := r.Lookup("c.test").Why; w != "c.test is not looked up in DNS, since there are more than 2 names" {
		t.Error(w)
	}
	r.Set([]string{"b.test", "0.test", "a.test"}) // those that are known stay
	if w := r.Lookup("a.test").Why; w != "a.test is being looked up in DNS" {
		t.Error(w)
	}
}

// What is learnt of DNS that fails, and that says no.
func TestFailures(t *testing.T) {
	r := New(Options{})
	r.Set([]string{"a.test"})
	now := time.Unix(1e9, 0)
	good := found{addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, life: time.Hour}
	fails, none := errors.New("no answer"), &net.DNSError{IsNotFound: true}
	wait := func() time.Duration { return r.entries["a.test"].due.Sub(now) }
	for i, step := range []struct {
		after time.Duration
		found found
		err   error
		first string
		wait  time.Duration
	}{
		{0, found{}, fails, "a.test cannot be looked up, since DNS does not answer", 2 * time.Second},
		{0, found{}, fails, "a.test cannot be looked up, since DNS does not answer", 4 * time.Second},
		{0, good, nil, "192.0.2.1", longest},
		{time.Minute, found{}, fails, "192.0.2.1", 2 * time.Second},
		{staleFor + time.Second, found{}, fails, "a.test cannot be looked up, since DNS does not answer", 4 * time.Second},
		{0, good, nil, "192.0.2.1", longest},
		{0, found{life: time.Hour}, none, "a.test has no address in DNS", longestNot},
		{0, found{life: 1}, none, "a.test has no address in DNS", time.Second},
	} {
		now = now.Add(step.after)
		r.learn("a.test", step.found, step.err, now)
		if got := first(r, "a.test"); got != step.first || wait() != step.wait {
			t.Errorf("step %d: %s for %v, want %s for %v", i, got, wait(), step.first, step.wait)
		}
	}
	r.learn("nobody.test", good, nil, now) // is not wanted any more
}

// Of a name with addresses of one family, that DNS says so of the other is no word on these:
// while its own question fails, they are kept.
func TestOneFamilyFails(t *testing.T) {
	for family, c := range map[string]struct {
		addr string
		fail dnsmessage.Type
	}{"IPv4": {"192.0.2.1", dnsmessage.TypeA}, "IPv6": {"2001:db8::1", dnsmessage.TypeAAAA}} {
		t.Run(family, func(t *testing.T) {
			r, server := run(t, Options{Least: 10 * time.Millisecond})
			server.Set("a.test.", 0, c.addr)
			server.Set("b.test.", 0, "192.0.2.9")
			r.Set([]string{"a.test", "b.test"})
			until(t, r, "a.test is known", func() bool { return first(r, "a.test") == c.addr })
			server.FailType("a.test.", c.fail)
			asked := server.Asked("a.test.")
			for i := 1; server.Asked("a.test.") < asked+20; i++ { // b.test says that time passes
				next := fmt.Sprintf("192.0.2.%d", 10+i%100)
				server.Set("b.test.", 0, next)
				until(t, r, "b.test has moved", func() bool { return first(r, "b.test") == next })
				if got := first(r, "a.test"); got != c.addr {
					t.Fatalf("a.test is %s, want the last address", got)
				}
			}
		})
	}
}

// What the other family has is of use meanwhile.
func TestTheOtherFamilyIsUsed(t *testing.T) {
	r, server := run(t, Options{Least: 10 * time.Millisecond})
	server.Set("a.test.", 0, "192.0.2.1", "2001:db8::1")
	server.FailType("a.test.", dnsmessage.TypeAAAA)
	r.Set([]string{"a.test"})
	until(t, r, "a.test is known", func() bool { return first(r, "a.test") == "192.0.2.1" })
}

// The addresses of a family that DNS fails to tell of are kept for as long as all are kept
// while it tells of none, and asked for as soon. Those of the other family move meanwhile.
func TestHalfAnAnswer(t *testing.T) {
	r := New(Options{})
	r.Set([]string{"a.test"})
	now := time.Unix(1e9, 0)
	v4, v6, moved := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	fails := errors.New("no answer")
	for i, step := range []struct {
		after time.Duration
		found found
		addrs []netip.Addr
		wait  time.Duration
	}{
		{0, found{addrs: []netip.Addr{v6}, life: time.Hour, half: fails, is4: true}, []netip.Addr{v6}, longest}, // all there ever was
		{0, found{addrs: []netip.Addr{v4, v6}, life: time.Hour}, []netip.Addr{v4, v6}, longest},
		{time.Minute, found{addrs: []netip.Addr{v6}, life: time.Hour, half: fails, is4: true}, []netip.Addr{v4, v6}, 2 * time.Second},
		{time.Minute, found{addrs: []netip.Addr{v4}, life: time.Hour, half: fails}, []netip.Addr{v4, v6}, 4 * time.Second},
		{time.Minute, found{addrs: []netip.Addr{moved}, life: time.Hour, half: fails, is4: true}, []netip.Addr{v4, moved}, 8 * time.Second},
		{staleFor, found{addrs: []netip.Addr{v6}, life: time.Hour, half: fails, is4: true}, []netip.Addr{v6}, longest},
	} {
		now = now.Add(step.after)
		r.learn("a.test", step.found, nil, now)
		if e := r.entries["a.test"]; !slices.Equal(e.Addrs, step.addrs) || e.due.Sub(now) != step.wait {
			t.Errorf("step %d: %v for %v, want %v for %v", i, e.Addrs, e.due.Sub(now), step.addrs, step.wait)
		}
	}
}

// FuzzNote: whatever comes from the network, no time to live is negative.
func FuzzNote(f *testing.F) {
	name := dnsmessage.MustNewName("a.test.")
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Answers: []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: 1 << 31}, Body: &dnsmessage.AResource{A: [4]byte{1, 2, 3, 4}}}}}
	b, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(fmt.Sprint("\x00", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := &lives{}
		l.note(b)
		if l.life(true) <= 0 || l.life(false) <= 0 {
			t.Errorf("%v %v", l.some, l.no)
		}
	})
}
