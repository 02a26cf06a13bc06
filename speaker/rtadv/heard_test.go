package rtadv

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"pgregory.net/rapid"
)

func encoded(t testing.TB, m ndp.Message) []byte {
	t.Helper()
	b, err := ndp.MarshalMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func advertised(t testing.TB, lifetime time.Duration) []byte {
	t.Helper()
	return encoded(t, &ndp.RouterAdvertisement{RouterLifetime: lifetime, Options: []ndp.Option{
		&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: []byte{2, 0, 0, 0, 0, 1}}, &ndp.MTU{MTU: 1500},
	}})
}

func TestParse(t *testing.T) {
	router := netip.MustParseAddr("fe80::2")
	good := advertised(t, 30*time.Second)
	solicited := encoded(t, &ndp.RouterSolicitation{})
	changed := func(at int, to byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = to
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		hops int
		from netip.Addr
		want message
		ok   bool
	}{
		{"an advertisement", good, 255, router, message{advertisement, 30 * time.Second}, true},
		{"without options", good[:16], 255, router, message{advertisement, 30 * time.Second}, true},
		{"a solicitation", solicited, 255, router, message{kind: solicitation}, true},
		{"a solicitation from nowhere", solicited, 255, netip.IPv6Unspecified(), message{kind: solicitation}, true},
		{"it was passed on", good, 254, router, message{}, false},
		{"from a global address", good, 255, netip.MustParseAddr("2001:db8::1"), message{}, false},
		{"from nowhere", good, 255, netip.IPv6Unspecified(), message{}, false},
		{"another code", changed(1, 1), 255, router, message{}, false},
		{"another type", changed(0, 136), 255, router, message{}, false},
		{"an option of length zero", changed(17, 0), 255, router, message{}, false},
		{"an option that is too long", changed(17, 3), 255, router, message{}, false},
		{"half an option", good[:20], 255, router, message{}, false},
		{"cut short", good[:15], 255, router, message{}, false},
		{"nothing", nil, 255, router, message{}, false},
	} {
		m, ok := parse(c.b, c.hops, c.from)
		if ok != c.ok || ok && m != c.want {
			t.Errorf("%s: %+v, %v", c.name, m, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(advertised(f, time.Hour), 255)
	f.Add(encoded(f, &ndp.RouterSolicitation{}), 255)
	f.Add([]byte{134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, 255)
	f.Fuzz(func(t *testing.T, b []byte, hops int) {
		m, ok := parse(b, hops, netip.MustParseAddr("fe80::2"))
		if ok && (hops != 255 || m.kind != b[0] || m.lifetime < 0 || m.lifetime > 65535*time.Second) {
			t.Errorf("%x with hop limit %d: %+v", b, hops, m)
		}
		// The library is stricter about what is in options, never about their lengths.
		if _, err := ndp.ParseMessage(b); err == nil && hops == 255 && len(b) > 1 && b[1] == 0 && (b[0] == advertisement || b[0] == solicitation) && !ok {
			t.Errorf("%x is refused", b)
		}
	})
}

// A conversation on a link: who is the router after each step.
func TestTheFirstRouterStays(t *testing.T) {
	const a, b = "fe80::a", "fe80::b"
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var h heard
	if l := h.state(begin, "eth1"); l.Router.IsValid() || !strings.Contains(l.Problem, "eth1") {
		t.Errorf("nobody: %+v", l)
	}
	for _, step := range []struct {
		at       int // seconds
		who      string
		lifetime time.Duration
		router   string
		crowd    bool
	}{
		{0, a, 0, a, false},
		{1, b, 0, a, true},
		{10, a, 0, a, true},
		{20, "", 0, a, true},
		{32, "", 0, a, false}, // b has been silent for long enough
		{39, b, 0, a, true},   // a has not
		{41, b, 0, b, false},
		{42, a, 0, b, true}, // and is not let in again
		{50, b, 1800 * time.Second, b, true},
		{200, a, 0, b, true}, // a lifetime is believed
		{1849, a, 0, b, true},
		{1851, a, 0, a, false},
		{1852, a, 24 * time.Hour, a, false},
		{1852 + 9001, b, 0, b, false}, // within reason
	} {
		now := begin.Add(time.Duration(step.at) * time.Second)
		if step.who != "" {
			h.hear(now, netip.MustParseAddr(step.who), step.lifetime)
		}
		if l := h.state(now, "eth1"); l.Router.String() != step.router || (l.Problem != "") != step.crowd {
			t.Errorf("after %d s, heard %q: %+v, want %s, crowd %v", step.at, step.who, l, step.router, step.crowd)
		}
	}
	h.interrupted()
	now := begin.Add(3 * time.Hour)
	if l := h.state(now, "eth1"); l.Router.String() != b {
		t.Errorf("the link was down: %+v: a router that is not gone for sure is kept", l)
	}
	h.hear(now, netip.MustParseAddr(a), 0)
	if l := h.state(now, "eth1"); l.Router.String() != a || l.Problem != "" {
		t.Errorf("after the link was down: %+v", l)
	}
}

// However strangers advertise, who keeps speaking stays the router, and what they
// change is at most which of them is named, once in their time.
func TestStrangersTakeOverNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		router := netip.MustParseAddr("fe80::1")
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var h heard
		h.hear(now, router, 0)
		spoke, begin, changes, was := now, now, 0, h.state(now, "eth1")
		for range rapid.IntRange(1, 200).Draw(t, "advertisements") {
			now = now.Add(time.Duration(rapid.IntRange(0, 10_000).Draw(t, "ms")) * time.Millisecond)
			if now.Sub(spoke) > 10*time.Second {
				spoke = spoke.Add(10 * time.Second)
				h.hear(spoke, router, 0)
			}
			stranger := netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 14: 1, 15: byte(rapid.IntRange(0, 255).Draw(t, "stranger"))})
			h.hear(now, stranger, time.Duration(rapid.IntRange(0, 65535).Draw(t, "lifetime"))*time.Second)
			is := h.state(now, "eth1")
			if is.Router != router {
				t.Fatalf("%v took over", is.Router)
			}
			if is != was {
				changes++
			}
			was = is
		}
		if most := 1 + int(now.Sub(begin)/silence); changes > most {
			t.Fatalf("%d changes in %v", changes, now.Sub(begin))
		}
	})
}

func TestPace(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p pace
	for n, want := range []time.Duration{0, time.Second, 2 * time.Second, 12 * time.Second, 22 * time.Second} {
		if at := begin.Add(want); !p.due(at) || n > 0 && p.due(at.Add(-time.Millisecond)) {
			t.Errorf("advertisement %d is due at %v, not %v", n, p.next.Sub(begin), want)
		}
		p.done(begin.Add(want), 0)
	}
	// Whoever asks is answered, and all who ask within a second at once.
	asked := begin.Add(25 * time.Second)
	p.ask(asked)
	if !p.due(asked) {
		t.Error("no answer")
	}
	p.done(asked, 0)
	p.ask(asked.Add(time.Millisecond))
	p.ask(asked.Add(2 * time.Millisecond))
	if p.due(asked.Add(999*time.Millisecond)) || !p.due(asked.Add(time.Second)) {
		t.Errorf("the next answer comes after %v", p.next.Sub(asked))
	}
	p.done(asked.Add(time.Second), 0.999)
	if pause := p.next.Sub(p.last); pause < 7*time.Second || pause > 8*time.Second {
		t.Errorf("with jitter after %v", pause)
	}
}
