package bgp

import (
	"net/netip"
	"testing"

	"quayside.io/test/netns"
)

// TestNextHopsFollowTheInterface: a node speaks BGP over IPv4 before a router has
// advertised its IPv6 prefix, and later gets another. The session stays, and the routes
// are where the node is.
func TestNextHopsFollowTheInterface(t *testing.T) {
	if !inNamespace(t, "bird", "birdc") {
		return
	}
	r := newRouter(t, 1)
	netns.Sh(t, "ip addr del 2001:db8:1::1/64 dev r1")
	r.bird(`protocol bgp q { local 10.0.1.2 as 65001; neighbor 10.0.1.1 as 64500; ` + channels + ` }`)
	s := start(t, Options{})
	s.Set(one("r", settings(1), routesOf(&Attributes{}, "192.0.2.1/32", "2001:db8:f00::1/128")))
	up := s.await("r", "without IPv6", func(state SessionState) bool { return len(state.Withheld) == 1 && state.Announced == 1 })
	netns.Sh(t, "ip addr add 2001:db8:1::1/64 dev r1 nodad")
	r.birdKnows("2001:db8:f00::1/128", "BGP.next_hop: 2001:db8:1::1")
	s.await("r", "with both", func(state SessionState) bool { return len(state.Withheld) == 0 && state.Announced == 2 })
	netns.Sh(t, "ip addr add 2001:db8:1::9/64 dev r1 nodad; ip addr del 2001:db8:1::1/64 dev r1")
	r.birdKnows("2001:db8:f00::1/128", "BGP.next_hop: 2001:db8:1::9")
	netns.Sh(t, "ip addr del 2001:db8:1::9/64 dev r1")
	now := s.await("r", "without IPv6", func(state SessionState) bool { return len(state.Withheld) == 1 && state.Announced == 1 })
	if !now.Since.Equal(up.Since) {
		t.Error("an address ended the session")
	}
}

// An address that comes beside the next hop changes nothing, though the kernel lists it
// first.
func TestANextHopStaysWhileItIsThere(t *testing.T) {
	first, newer := netip.MustParsePrefix("2001:db8:1::1/64"), netip.MustParsePrefix("2001:db8:1::9/64")
	for _, c := range []struct {
		have           []netip.Prefix
		was, now, want netip.Addr
	}{
		{[]netip.Prefix{newer, first}, first.Addr(), newer.Addr(), first.Addr()},
		{[]netip.Prefix{newer}, first.Addr(), newer.Addr(), newer.Addr()},
		{[]netip.Prefix{newer}, netip.Addr{}, newer.Addr(), newer.Addr()},
		{nil, first.Addr(), netip.Addr{}, netip.Addr{}},
	} {
		if got := kept(c.have, c.was, c.now); got != c.want {
			t.Errorf("of %v, %v stays %v; want %v", c.have, c.was, got, c.want)
		}
	}
}
