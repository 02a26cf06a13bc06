package bgp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"quayside.io/test/netns"
)

// here is a router that runs on this node itself, beside us.
func here(t *testing.T) *router {
	t.Helper()
	return &router{t: t, pid: strconv.Itoa(os.Getpid()), dir: t.TempDir()}
}

// calico is the configuration of the BIRD that Calico runs on each node, as far
// as it matters here: all that peers tell goes into the kernel, and on
// to peers what the filter lets pass. It never has a peer at the node's own address,
// whatever the port (projectcalico/calico#6863), so ours is at 127.0.0.1.
//
// The node's own kernel gets our routes as unreachable, since their next hop is
// the node itself. kube-proxy redirects what comes from elsewhere before that
// counts; programs of the node itself reach the address only without Calico's
// BIRD between us and the router.
func calico(us string, outer uint32) string {
	return fmt.Sprintf(`
protocol kernel { learn; persist; scan time 2; graceful restart; merge paths on; ipv4 { import all; export all; }; }
protocol direct { interface -"cali*", -"kube-ipvs*", "*"; ipv4; }
filter calico_export_to_bgp_peers { if net ~ 192.0.2.0/24 then accept; reject; }
template bgp bgp_template {
	local as 64512; multihop; graceful restart;
	connect delay time 1; connect retry time 3; error wait time 5,60;
	ipv4 { gateway recursive; import all; export filter calico_export_to_bgp_peers; add paths on; };
}
protocol bgp Global_127_0_0_1 from bgp_template { %s}
protocol bgp Global_10_0_1_2 from bgp_template { neighbor 10.0.1.2 as %d; source address 10.0.1.1; }
`, us, outer)
}

// TestBIRDOnTheNodeCarriesOurRoutes: where Calico's BIRD has the node's only
// session with the router, it is our peer, and the router learns from it.
func TestBIRDOnTheNodeCarriesOurRoutes(t *testing.T) {
	if !inNamespace(t, "vtysh", "bird", "birdc") {
		return
	}
	passive := "passive; "
	for _, c := range []struct {
		name, us, listen string
		outer            uint32 // AS number of the router
		asPath           string
		change           func(*Settings)
	}{
		{name: "we dial it", us: "neighbor 127.0.0.1 as 64500; " + passive, outer: 65001, asPath: "64512 64500",
			change: func(s *Settings) { s.Peer = addrPort("127.0.0.1:179") }},
		{name: "we dial it at the node's address", us: "neighbor 127.0.0.1 as 64500; source address 10.0.1.1; " + passive, outer: 65001, asPath: "64512 64500",
			change: func(s *Settings) {
				s.Peer, s.Source = addrPort("10.0.1.1:179"), addrPort("127.0.0.1:0").Addr()
			}},
		{name: "it dials us", us: "neighbor 127.0.0.1 port 1790 as 64500; source address 10.0.1.1; ", listen: ":1790", outer: 65001, asPath: "64512 64500",
			change: func(s *Settings) { s.Peer, s.Passive = addrPort("10.0.1.1:179"), true }},
		// To its own AS it tells the next hop as it heard it: it must not be 127.0.0.1.
		{name: "the router is of its AS", us: "neighbor 127.0.0.1 as 64500; " + passive, outer: 64512, asPath: "64500",
			change: func(s *Settings) { s.Peer, s.RouterID = addrPort("127.0.0.1:179"), addrPort("10.0.1.1:0").Addr() }},
		{name: "the router is of its AS, and we dial the node's address", us: "neighbor 127.0.0.1 as 64500; source address 10.0.1.1; " + passive, outer: 64512, asPath: "64500",
			change: func(s *Settings) {
				s.Peer, s.Source = addrPort("10.0.1.1:179"), addrPort("127.0.0.1:0").Addr()
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer := newRouter(t, 1)
			outer.frr(neighbor(c.outer, "10.0.1.1", "remote-as 64512"))
			node := here(t)
			node.bird(calico(c.us, c.outer))
			s := start(t, Options{Listen: c.listen})
			set := settings(1)
			set.PeerASN, set.IPv6 = 64512, false
			c.change(&set)
			a := &Attributes{Communities: []uint32{65000<<16 | 7}}
			s.Set(one("calico", set, routesOf(a, "192.0.2.1/32", "192.0.2.2/32")))
			s.awaitUp("calico")
			outer.expect("ipv4", "192.0.2.1/32", "192.0.2.2/32")
			outer.expectPath("ipv4", "192.0.2.1/32", func(p path) bool {
				return p.Valid && p.NextHops[0].IP == "10.0.1.1" && p.ASPath.String == c.asPath && p.Community.String == "65000:7"
			})
			s.Set(one("calico", set, routesOf(a, "192.0.2.2/32")))
			outer.expect("ipv4", "192.0.2.2/32")
			s.stop()
			outer.expect("ipv4")
		})
	}
}

// TestBIRDReflectsOurRoutes: a route reflector between us and the router, all in
// one AS. The next hop stays ours, and so does the router ID.
func TestBIRDReflectsOurRoutes(t *testing.T) {
	if !inNamespace(t, "vtysh", "bird", "birdc") {
		return
	}
	reflector, outer := newRouter(t, 1), newRouter(t, 2)
	netns.Sh(t, fmt.Sprintf("ip link del r2; ip link add far netns %s type veth peer name eth0 netns %s", reflector.pid, outer.pid))
	reflector.sh("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1; ip addr add 10.0.2.1/24 dev far; ip addr add 2001:db8:2::1/64 dev far nodad; ip link set far up")
	outer.sh(`ip addr add 10.0.2.2/24 dev eth0; ip addr add 2001:db8:2::2/64 dev eth0 nodad; ip link set eth0 up
		ip route add 10.0.1.0/24 via 10.0.2.1; ip route add 2001:db8:1::/64 via 2001:db8:2::1`)
	both := " ipv4 { import all; export all; }; ipv6 { import all; export all; }; "
	reflector.bird(`protocol direct { ipv4; ipv6; }
protocol bgp q { local 10.0.1.2 as 64500; neighbor 10.0.1.1 as 64500; rr client; rr cluster id 10.0.0.2;` + both + `}
protocol bgp outer { local 10.0.2.1 as 64500; neighbor 10.0.2.2 as 64500; rr client; rr cluster id 10.0.0.2;` + both + `}`)
	outer.frr(neighbor(64500, "10.0.2.1", "remote-as 64500"))
	s := start(t, Options{})
	set := settings(1)
	set.PeerASN = 64500
	a := &Attributes{LocalPref: 150, Communities: []uint32{65000<<16 | 7}}
	s.Set(one("reflector", set, routesOf(a, "192.0.2.1/32", "2001:db8:f00::1/128")))
	s.awaitUp("reflector")
	hops := map[string]string{"192.0.2.1/32": "10.0.1.1", "2001:db8:f00::1/128": "2001:db8:1::1"}
	for prefix, hop := range hops {
		outer.expectPath(familyName(prefix), prefix, func(p path) bool {
			return p.Valid && p.NextHops[0].IP == hop && p.LocPrf == 150 && p.Community.String == "65000:7" && p.OriginatorID == "10.9.9.9"
		})
	}
	s.Set(one("reflector", set, nil))
	for prefix := range hops {
		within(t, 10*time.Second, prefix+" goes", func() error {
			if p, err := outer.path(familyName(prefix), prefix); err == nil {
				return fmt.Errorf("%+v", p)
			}
			return nil
		})
	}
}

func familyName(prefix string) string {
	if strings.Contains(prefix, ":") {
		return "ipv6"
	}
	return "ipv4"
}
