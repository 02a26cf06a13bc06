package lab

import "errors"

// SecondLAN is another switch with a cable to every node: eth1 there, at first
// without an address. It has no fault of its own and no router; its subnets
// are 10.79.0.0/24 and fd79::/64.
type SecondLAN struct {
	view *Cluster
	lan  *lan
}

// SecondLAN plugs it in, until the test ends.
func (v *Cluster) SecondLAN() *SecondLAN {
	v.helper()
	l, err := newLAN(v.run.netnsName("lan2"), secondLAN, v.opts.families)
	v.must(err)
	v.onEnd(func() {
		var errs []error
		for _, n := range v.nodes {
			errs = append(errs, l.unplug(n.name))
		}
		if err := errors.Join(append(errs, l.ns.close())...); err != nil {
			v.t.Error(err)
		}
	})
	for _, n := range v.nodes {
		v.must(l.plugBare(n.ns, n.name, "eth1", firstNode+n.number))
	}
	return &SecondLAN{view: v, lan: l}
}

// Client is Cluster.Client on this LAN.
func (s *SecondLAN) Client(name string) *Client {
	s.view.helper()
	return s.view.clientOn(s.lan, name)
}

// IP is the address of a node on this LAN, with its length, for who wants to
// give it one; IPv6 is the other.
func (s *SecondLAN) IP(n *Node) string { return s.lan.subnet.addr4(firstNode+n.number) + "/24" }

// IPv6 is the address of a node on this LAN, with its length.
func (s *SecondLAN) IPv6(n *Node) string { return s.lan.subnet.addr6(firstNode+n.number) + "/64" }

// MAC is that of a node's eth1.
func (s *SecondLAN) MAC(n *Node) string { return s.lan.subnet.mac(firstNode + n.number) }
