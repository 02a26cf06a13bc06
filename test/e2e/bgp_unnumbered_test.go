package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"quayside.io/test/lab"
)

// A router and a node are joined by a cable on which neither has an address but
// its link-local one: both find the other by Router Advertisements. The router
// learns IPv4 addresses by IPv6 next hops and reaches them, BFD guards the path,
// and a node that lacks the interface says so.
func TestBGPUnnumbered(t *testing.T) {
	beside(t)
	e := three(t)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	router := e.Router("tor", `router bgp 65001
 no bgp ebgp-requires-policy
 neighbor swp1 interface remote-as external
 neighbor swp1 bfd
 address-family ipv6 unicast
  neighbor swp1 activate
`)
	node := e.Node(1)
	own := e.cable(router, node)
	e.Apply(bgpPool + `
---
apiVersion: quayside.io/v1alpha1
kind: BFDProfile
metadata: {name: quick}
spec: {receiveInterval: 100, transmitInterval: 100, detectMultiplier: 5}
---
apiVersion: quayside.io/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 64500, dynamicASN: external, interface: up1, connectTime: 1s, bfdProfile: quick}
` + bgpService("far", "Cluster"))
	far := e.serviceAddress("far")
	e.Eventually(settle, func() error {
		got, err := nextHops(router, far, rackCommunity)
		if err == nil && (len(got) != 1 || got[0] != own) {
			err = fmt.Errorf("%s by %v, want %s", far, got, own)
		}
		return err
	})
	e.Eventually(settle, func() error {
		_, err := router.Try("http://" + far + "/")
		return err
	})
	e.Eventually(settle, func() error { return bfdUp(router, []string{own}) })
	e.Eventually(settle, func() error {
		for name, s := range e.speakerStatuses() {
			b := s.Status.BGPSessions
			switch {
			case len(b) != 1:
				return fmt.Errorf("%s says %+v", name, b)
			case name == node.Name() && (b[0].State != "Established" || !strings.HasSuffix(b[0].Address, "%up1") || b[0].BFDState != "Up"):
				return fmt.Errorf("%s says %+v", name, b)
			case name != node.Name() && !strings.Contains(b[0].LastError, "interface up1"):
				return fmt.Errorf("%s has no such interface and says %+v", name, b)
			}
		}
		return nil
	})
}

// cable joins a router, where it is swp1, and a node, where it is up1, until the
// test ends. It returns the node's address on it.
func (e edge) cable(router *lab.Router, node *lab.Node) (own string) {
	e.t.Helper()
	const swp, up = "swp1", "up1"
	router.Exec("ip", "link", "add", swp, "type", "veth", "peer", "name", up, "netns", node.Netns())
	e.t.Cleanup(func() { node.Exec("ip", "link", "del", up) })
	for link, host := range map[string]lab.Host{swp: router.Host, up: node.Host} {
		host.Exec("sysctl", "-qw", "net.ipv6.conf."+link+".accept_dad=0", "net.ipv6.conf."+link+".accept_ra=0", "net.ipv4.conf."+link+".rp_filter=0")
		host.Exec("ip", "link", "set", link, "up")
	}
	for _, word := range strings.Fields(node.Exec("ip", "-6", "-o", "addr", "show", "dev", up, "scope", "link")) {
		if ip, _, err := net.ParseCIDR(word); err == nil {
			return ip.String()
		}
	}
	e.t.Fatal("no link-local address")
	return ""
}
