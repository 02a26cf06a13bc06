package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"quayside.io/test/netns"
)

// neighbor is the configuration of FRR's side of a session in both families.
func neighbor(asn uint32, addr string, options ...string) string {
	text := fmt.Sprintf("router bgp %d\n no bgp ebgp-requires-policy\n", asn)
	for _, o := range options {
		text += " neighbor " + addr + " " + o + "\n"
	}
	for _, f := range []string{"ipv4", "ipv6"} {
		text += " address-family " + f + " unicast\n  neighbor " + addr + " activate\n exit-address-family\n"
	}
	return text
}

func one(name string, set Settings, routes []Route) *Want {
	return &Want{Sessions: []Session{{Name: name, Settings: set, Routes: routes}}}
}

func TestFRRLearnsRoutesWithTheirAttributes(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r := newRouter(t, 1)
	r.frr(neighbor(65001, "10.0.1.1", "remote-as 64500"))
	s := start(t, Options{})
	plain := &Attributes{}
	rich := &Attributes{Communities: []uint32{65000<<16 | 100, 65000<<16 | 1}, LargeCommunities: []LargeCommunity{{65000, 1, 2}}, Prepend: 2}
	hop := &Attributes{}
	w := &Want{Sessions: []Session{{Name: "r", Settings: settings(1), Routes: append(append(routesOf(plain, "192.0.2.1/32"),
		routesOf(rich, "198.51.100.0/24", "2001:db8:f00::/48")...), routesOf(hop, "2001:db8:f01::1/128")...)}}}
	s.Set(w)
	state := s.awaitUp("r")
	if state.Announced != 4 || state.PeerASN != 65001 {
		t.Errorf("%+v", state)
	}
	r.expect("ipv4", "192.0.2.1/32", "198.51.100.0/24")
	r.expect("ipv6", "2001:db8:f00::/48", "2001:db8:f01::1/128")
	r.expectPath("ipv4", "198.51.100.0/24", func(p path) bool {
		return p.Valid && p.ASPath.String == "64500 64500 64500" && p.NextHops[0].IP == "10.0.1.1" &&
			p.Community.String == "65000:1 65000:100" && p.LargeCommunity.String == "65000:1:2"
	})
	r.expectPath("ipv6", "2001:db8:f00::/48", func(p path) bool {
		return p.Valid && p.ASPath.String == "64500 64500 64500" && p.NextHops[0].IP == "2001:db8:1::1" &&
			p.Community.String == "65000:1 65000:100"
	})
	// A change touches only what changed, and a withdrawal withdraws.
	s.Set(&Want{Sessions: []Session{{Name: "r", Settings: settings(1), Routes: routesOf(plain, "192.0.2.1/32", "203.0.113.7/32")}}})
	r.expect("ipv4", "192.0.2.1/32", "203.0.113.7/32")
	r.expect("ipv6")
	if after := s.awaitUp("r"); !after.Since.Equal(state.Since) {
		t.Error("the session was reset")
	}
	s.Set(&Want{})
	r.expect("ipv4")
}

// TestFRRTakesEveryKindOfSession has one case per setting. Each ends with FRR
// having learned both routes, unless why says why it cannot.
func TestFRRTakesEveryKindOfSession(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	type sessionCase struct {
		name   string
		frr    []string // options of the neighbour
		asn    uint32   // FRR's; zero: 65001
		change func(*Settings)
		listen bool
		why    string
		is     func(path) bool
	}
	any4 := netip.MustParseAddr("10.0.1.1")
	for _, c := range []sessionCase{
		{name: "internal", frr: []string{"remote-as 64500"}, asn: 64500, change: func(s *Settings) { s.PeerASN = 64500 },
			is: func(p path) bool {
				return p.LocPrf == 200 && p.ASPath.String == "Local" && p.Community.String == "64500:7"
			}},
		{name: "password", frr: []string{"remote-as 64500", "password secret"}, change: func(s *Settings) { s.Password = "secret" }},
		{name: "no hold timer", frr: []string{"remote-as 64500"}, change: func(s *Settings) { s.Hold = 0 }},
		{name: "hold 3 s", frr: []string{"remote-as 64500"}, change: func(s *Settings) { s.Hold = 3 * time.Second }},
		{name: "TTL security", frr: []string{"remote-as 64500", "ttl-security hops 1"}, change: func(s *Settings) { s.TTLSecurity = true }},
		{name: "long AS numbers", frr: []string{"remote-as 4200000001"}, asn: 4200000002,
			change: func(s *Settings) { s.ASN, s.PeerASN = 4200000001, 4200000002 },
			is:     func(p path) bool { return p.ASPath.String == "4200000001 4200000001" }},
		{name: "a peer without capabilities", frr: []string{"remote-as 4200000001", "dont-capability-negotiate"},
			change: func(s *Settings) { s.ASN = 4200000001 }, is: func(p path) bool { return p.ASPath.String == "23456 23456" }},
		{name: "a passive peer", frr: []string{"remote-as 64500", "passive"}, change: func(*Settings) {}},
		{name: "passive", frr: []string{"remote-as 64500", "timers connect 1"}, listen: true, change: func(s *Settings) { s.Passive = true }},
		{name: "passive with a password", frr: []string{"remote-as 64500", "timers connect 1", "password secret"}, listen: true,
			change: func(s *Settings) { s.Passive, s.Password = true, "secret" }},
		{name: "passive with TTL security", frr: []string{"remote-as 64500", "timers connect 1", "ttl-security hops 1"}, listen: true,
			change: func(s *Settings) { s.Passive, s.TTLSecurity = true, true }},
		{name: "both dial", frr: []string{"remote-as 64500", "timers connect 1"}, listen: true, change: func(*Settings) {}},
		{name: "source address", frr: []string{"remote-as 64500"}, change: func(s *Settings) { s.Source = any4 }},
		{name: "any external AS", frr: []string{"remote-as 64500"}, change: func(s *Settings) { s.PeerASN, s.Kinship = 0, External }},
		{name: "any internal AS", frr: []string{"remote-as 64500"}, asn: 64500, change: func(s *Settings) { s.PeerASN, s.Kinship = 0, Internal }},
		{name: "graceful restart", frr: []string{"remote-as 64500"}, change: func(s *Settings) { s.Restart = 120 * time.Second }},
		{name: "not the AS configured", frr: []string{"remote-as 64500"}, change: func(s *Settings) { s.PeerASN = 65099 }, why: "it says AS 65001, and AS 65099 is configured"},
		{name: "external, not internal", frr: []string{"remote-as 64500"}, change: func(s *Settings) { s.PeerASN, s.Kinship = 0, Internal }, why: "an internal peer in AS 64500"},
		{name: "internal, not external", frr: []string{"remote-as 64500"}, asn: 64500, change: func(s *Settings) { s.PeerASN, s.Kinship = 0, External }, why: "an external peer is configured"},
		{name: "not our AS", frr: []string{"remote-as 64999"}, change: func(*Settings) {}, why: "Bad Peer AS"},
		{name: "shut down", frr: []string{"remote-as 64500", "shutdown message closed for today"}, change: func(*Settings) {}, why: "the peer closed the connection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.asn == 0 {
				c.asn = 65001
			}
			r := newRouter(t, 1)
			r.frr(neighbor(c.asn, "10.0.1.1", c.frr...))
			set := settings(1)
			c.change(&set)
			opts := Options{OpenTime: 5 * time.Second}
			if c.listen {
				opts.Listen = ":179"
			}
			s := start(t, opts)
			s.Set(one("r", set, routesOf(&Attributes{LocalPref: 200, Communities: []uint32{64500<<16 | 7}, Prepend: 1}, "192.0.2.1/32")))
			if c.why != "" {
				s.awaitError("r", c.why)
				return
			}
			s.awaitUp("r")
			r.expectPath("ipv4", "192.0.2.1/32", func(p path) bool { return p.Valid && (c.is == nil || c.is(p)) })
			s.stop()
		})
	}
}

func TestFRRPassword(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r, other := newRouter(t, 1), newRouter(t, 2)
	r.frr(neighbor(65001, "10.0.1.1", "remote-as 64500", "password right"))
	other.frr(neighbor(65002, "10.0.2.1", "remote-as 64500"))
	s := start(t, Options{})
	want := func(password string) *Want {
		set := settings(1)
		set.Password = password
		return &Want{Sessions: []Session{{Name: "r", Settings: set, Routes: routesOf(&Attributes{}, "192.0.2.1/32")}, {Name: "other", Settings: settings(2)}}}
	}
	s.Set(want("wrong"))
	stays := s.awaitUp("other")
	s.awaitError("r", "so it looks if the passwords differ")
	s.Set(want("right"))
	s.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
	if now := s.awaitUp("other"); !now.Since.Equal(stays.Since) {
		t.Error("the other session was reset")
	}
}

// routersInARow are a neighbour, and one that only it has a link to: far there, eth0 here.
func routersInARow(t *testing.T) (between, beyond *router) {
	t.Helper()
	between, beyond = newRouter(t, 1), newRouter(t, 2)
	netns.Sh(t, fmt.Sprintf("ip link del r2; ip link add far netns %s type veth peer name eth0 netns %s", between.pid, beyond.pid))
	return between, beyond
}

// TestFRRBeyondARouter: an external peer two hops away needs MultiHop.
func TestFRRBeyondARouter(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	between, r := routersInARow(t)
	between.sh("sysctl -qw net.ipv4.ip_forward=1; ip addr add 10.0.2.1/24 dev far; ip link set far up")
	r.sh("ip addr add 10.0.2.2/24 dev eth0; ip link set eth0 up; ip route add 10.0.1.0/24 via 10.0.2.1")
	netns.Sh(t, "ip route add 10.0.2.0/24 via 10.0.1.2")
	r.frr(neighbor(65002, "10.0.1.1", "remote-as 64500", "ebgp-multihop 5"))
	s := start(t, Options{})
	set := settings(2)
	s.Set(one("r", set, nil))
	s.awaitError("r", "no route to host") // the TTL ends on the way
	set.MultiHop = true
	s.Set(one("r", set, routesOf(&Attributes{}, "192.0.2.1/32")))
	s.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
}

// TestFRRBeyondARouterOverIPv6: our link-local address means nothing to a peer on another
// link (RFC 2545 section 3), and FRR withdraws routes that it cannot make sense of.
func TestFRRBeyondARouterOverIPv6(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	between, r := routersInARow(t)
	between.sh("sysctl -qw net.ipv6.conf.all.forwarding=1; ip addr add 2001:db8:2::1/64 dev far nodad; ip link set far up")
	r.sh("ip addr add 10.0.2.2/24 dev eth0; ip addr add 2001:db8:2::2/64 dev eth0 nodad; ip link set eth0 up; ip route add 2001:db8:1::/64 via 2001:db8:2::1")
	netns.Sh(t, "ip route add 2001:db8:2::/64 via 2001:db8:1::2")
	r.frr(neighbor(65002, "2001:db8:1::1", "remote-as 64500", "ebgp-multihop 5"))
	s := start(t, Options{})
	set := settings(2)
	set.Peer, set.MultiHop = netip.MustParseAddrPort("[2001:db8:2::2]:179"), true
	s.Set(one("r", set, routesOf(&Attributes{}, "2001:db8:f00::1/128")))
	s.awaitUp("r")
	r.expect("ipv6", "2001:db8:f00::1/128")
	r.expectPath("ipv6", "2001:db8:f00::1/128", func(p path) bool {
		return p.Valid && len(p.NextHops) == 1 && p.NextHops[0].IP == "2001:db8:1::1"
	})
}

// TestFRROverIPv6 announces IPv4 with an IPv6 next hop (RFC 8950), from a
// global and from a link-local address.
func TestFRROverIPv6(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	for _, c := range []struct{ ours, peer, hop string }{
		{"2001:db8:1::1", "2001:db8:1::2", "2001:db8:1::1"},
		{"fe80::1", "fe80::2%r1", "fe80::1"},
	} {
		t.Run(c.ours, func(t *testing.T) {
			r := newRouter(t, 1)
			options := []string{"remote-as 64500", "capability extended-nexthop"}
			if strings.HasPrefix(c.ours, "fe80") {
				options = append(options, "interface eth0")
			}
			r.frr(neighbor(65001, c.ours, options...))
			s := start(t, Options{})
			set := settings(1)
			set.Peer = netip.AddrPortFrom(netip.MustParseAddr(c.peer), 179)
			s.Set(one("r", set, routesOf(&Attributes{}, "192.0.2.1/32", "2001:db8:f00::1/128")))
			s.awaitUp("r")
			r.expect("ipv4", "192.0.2.1/32")
			r.expect("ipv6", "2001:db8:f00::1/128")
			for family, prefix := range map[string]string{"ipv4": "192.0.2.1/32", "ipv6": "2001:db8:f00::1/128"} {
				r.expectPath(family, prefix, func(p path) bool {
					for _, hop := range p.NextHops {
						if hop.IP == c.hop {
							return p.Valid
						}
					}
					return false
				})
			}
			s.stop()
		})
	}
}

// TestFRRKeepsRoutesOverARestart: with graceful restart FRR keeps the routes of
// a speaker that is killed, without it they go.
func TestFRRKeepsRoutesOverARestart(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r := newRouter(t, 1)
	r.frr(neighbor(65001, "10.0.1.1", "remote-as 64500"))
	set := settings(1)
	set.Restart = 60 * time.Second
	routes := routesOf(&Attributes{}, "192.0.2.1/32", "192.0.2.2/32")
	first := start(t, Options{})
	first.Set(one("r", set, routes))
	r.expect("ipv4", "192.0.2.1/32", "192.0.2.2/32")
	first.stop()
	r.expectPath("ipv4", "192.0.2.1/32", func(p path) bool { return p.Stale && p.Valid })
	// The next announces one of the two: after its End-of-RIB the other goes.
	second := start(t, Options{})
	second.Set(one("r", set, routes[:1]))
	second.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
	r.expectPath("ipv4", "192.0.2.1/32", func(p path) bool { return !p.Stale && p.Valid })
	set.Restart = 0
	second.Set(one("r", set, routes))
	r.expect("ipv4", "192.0.2.1/32", "192.0.2.2/32")
	second.stop()
	r.expect("ipv4")
}

// TestFRRSeesADrain: GRACEFUL_SHUTDOWN, then nothing, then the words.
func TestFRRSeesADrain(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r := newRouter(t, 1)
	r.frr("log stdout debugging\ndebug bgp updates in\n" + neighbor(65001, "10.0.1.1", "remote-as 64500"))
	s := start(t, Options{Drain: time.Second})
	w := one("r", settings(1), routesOf(&Attributes{Communities: []uint32{65000<<16 | 1}}, "192.0.2.1/32"))
	s.Set(w)
	up := s.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
	draining := *w
	draining.Draining = true
	s.Set(&draining)
	r.says("community 65000:1 graceful-shutdown") // which it has for a second: who asks it may be late
	r.expect("ipv4")
	s.Set(w) // uncordoned
	r.expectPath("ipv4", "192.0.2.1/32", func(p path) bool { return p.Community.String == "65000:1" })
	if now := s.awaitUp("r"); !now.Since.Equal(up.Since) {
		t.Error("a drain reset the session")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Leave(ctx, "node reboots", false); err != nil {
		t.Fatal(err)
	}
	r.says(`6/2 (Cease/Administrative Shutdown) "node reboots"`)
}

// TestFRRAsksAgain: a new policy at the router takes effect without a reset.
func TestFRRAsksAgain(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r := newRouter(t, 1)
	r.frr(neighbor(65001, "10.0.1.1", "remote-as 64500"))
	s := start(t, Options{})
	s.Set(one("r", settings(1), routesOf(&Attributes{}, "192.0.2.1/32", "2001:db8:f00::1/128")))
	up := s.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
	r.configure("route-map in permit 10", "set local-preference 333", "router bgp 65001", "address-family ipv4 unicast",
		"neighbor 10.0.1.1 route-map in in")
	if out, err := exec.Command("vtysh", "--vty_socket", r.dir, "-c", "clear bgp ipv4 unicast * soft in").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	r.expectPath("ipv4", "192.0.2.1/32", func(p path) bool { return p.LocPrf == 333 })
	if now := s.awaitUp("r"); !now.Since.Equal(up.Since) {
		t.Error("the session was reset")
	}
	r.configure("router bgp 65001", "neighbor 10.0.1.1 shutdown message closed for today")
	s.awaitError("r", `Administrative Shutdown: "closed for today"`)
}

// TestFRRComesBack: bgpd is killed, which is seen and told, and started again:
// then there is another session with the same routes.
func TestFRRComesBack(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r := newRouter(t, 1)
	r.frr(neighbor(65001, "10.0.1.1", "remote-as 64500"))
	s := start(t, Options{})
	s.Set(one("r", settings(1), routesOf(&Attributes{}, "192.0.2.1/32")))
	first := s.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
	pid, err := os.ReadFile(r.dir + "/bgpd.pid")
	if err != nil {
		t.Fatal(err)
	}
	netns.Sh(t, "kill -9 "+strings.TrimSpace(string(pid)))
	gone := s.await("r", "down", func(state SessionState) bool { return state.State != established })
	if gone.Announced != 0 || gone.LastError == "" || !gone.LastErrorAt.After(first.Since) {
		t.Errorf("a session that has ended says %+v", gone)
	}
	s.awaitError("r", "connection refused") // nobody is there, and we go on asking
	r.startDaemon("bgpd")
	began := time.Now()
	second := s.awaitUp("r")
	t.Logf("up again %v after bgpd", second.Since.Sub(began).Round(time.Millisecond))
	if second.Announced != 1 || !second.Since.After(gone.LastErrorAt) {
		t.Errorf("%+v after %+v", second, gone)
	}
	r.expect("ipv4", "192.0.2.1/32")
}
