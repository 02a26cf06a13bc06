package bgp

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/rtadv"
	"quayside.io/test/netns"
)

// TestFRRUnnumbered: neither side has an address of the other. Both advertise on
// the link, and FRR takes the session from the address that our advertisements
// came from, though the link has another one.
func TestFRRUnnumbered(t *testing.T) {
	if !inNamespace(t, "vtysh") {
		return
	}
	r := newRouter(t, 1)
	// Only link-local addresses are left.
	netns.Sh(t, "ip -4 addr flush dev r1; ip -6 addr flush dev r1 scope global")
	r.sh("ip -4 addr flush dev eth0; ip -6 addr flush dev eth0 scope global")
	r.frr("router bgp 65001\n bgp router-id 9.9.9.1\n no bgp ebgp-requires-policy\n neighbor eth0 interface remote-as external\n" +
		" address-family ipv6 unicast\n  neighbor eth0 activate\n")
	finder := rtadv.New(rtadv.Options{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- finder.Run(ctx) }()
	defer func() { stop(); <-done }()
	finder.Set([]string{"r1"})
	var link rtadv.Link
	within(t, 10*time.Second, "the router is found", func() error {
		if link = finder.State()["r1"]; !link.Router.IsValid() {
			return errors.New(link.Problem)
		}
		return nil
	})
	t.Logf("found: %+v", link)
	s := start(t, Options{})
	set := settings(1)
	set.Peer, set.Source = netip.AddrPortFrom(link.Router, 179), link.Own
	s.Set(one("r", set, routesOf(&Attributes{}, "192.0.2.1/32", "2001:db8:f00::1/128")))
	s.awaitUp("r")
	r.expect("ipv4", "192.0.2.1/32")
	r.expect("ipv6", "2001:db8:f00::1/128")
	r.expectPath("ipv4", "192.0.2.1/32", func(p path) bool {
		return p.Valid && len(p.NextHops) > 0 && p.NextHops[0].IP == link.Own.String()
	})
	within(t, 10*time.Second, "the kernel of the router has a way", func() error {
		if route := r.sh("ip route show 192.0.2.1"); route == "" {
			return errors.New("it has none")
		}
		return nil
	})
}
