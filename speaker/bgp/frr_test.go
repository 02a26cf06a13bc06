package bgp

import "testing"

const bothFamilies = `
 no bgp ebgp-requires-policy
 address-family ipv4 unicast
  neighbor 10.0.1.1 activate
 address-family ipv6 unicast
  neighbor 10.0.1.1 activate
`

func TestFRRLearnsRoutesWithTheirAttributes(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r := newRouter(t, 1)
	r.frr("router bgp 65001\n neighbor 10.0.1.1 remote-as 64500" + bothFamilies)
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
