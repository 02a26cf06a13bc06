package ownership

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/speaker/announce"
)

// maxNearby is how many speakers one speaker asks on one interface.
const maxNearby = 8

// nearby are other speakers on LANs of this node, by interface. They should answer there
// if the LAN works.
func (m *Machine) nearby(chosen func(*announce.Interface) bool) map[string][]Host {
	out := map[string][]Host{}
	for i := range m.self.Interfaces {
		if own := &m.self.Interfaces[i]; own.Up && chosen(own) {
			out[own.Name] = m.hostsOn(own)
		}
	}
	return out
}

// nameLosers adds the nodes that are to lose an address: a node whose kernel answers is not
// cut off from the LAN, even if it publishes that it is deaf.
func (m *Machine) nameLosers(q *Inquiry) {
	for i := range m.self.Interfaces {
		own := &m.self.Interfaces[i]
		if _, asked := q.Nearby[own.Name]; !asked {
			continue
		}
		for _, a := range sorted(q.Takes) {
			for _, h := range appendHosts(nil, own, m.world.Members.Facts[q.Takes[a].From].Interfaces) {
				if !slices.Contains(q.Nearby[own.Name], h) {
					q.Nearby[own.Name] = append(q.Nearby[own.Name], h)
				}
			}
		}
	}
}

// listensOn selects the interfaces on which other speakers are asked for signs of life:
// those that carry addresses of layer 2, of any owner, so that a node that may take one
// knows whether it is heard. The network that gossip uses needs none: a node that is cut
// off there is missing from the members.
func (m *Machine) listensOn() func(*announce.Interface) bool {
	self := m.nodes().self
	return func(i *announce.Interface) bool { return self.IsValid() && !has(i, self) && m.carriesAny(i) }
}

// hostsOn are speakers with an address in a subnet of own. Each node asks those that
// follow it by name, so that no node is asked by all.
func (m *Machine) hostsOn(own *announce.Interface) (hosts []Host) {
	nodes := m.nodes().Nodes
	next := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name > m.opts.Node })
	for j := 0; j < len(nodes) && len(hosts) < maxNearby; j++ {
		name := nodes[(max(0, next)+j)%len(nodes)].Name
		if _, alive := m.memberView.alive[name]; alive && name != m.opts.Node {
			hosts = appendHosts(hosts, own, m.world.Members.Facts[name].Interfaces)
		}
	}
	return hosts
}

// has reports whether an address is the interface's own.
func has(i *announce.Interface, a netip.Addr) bool {
	return slices.ContainsFunc(i.Prefixes, func(p netip.Prefix) bool { return p.Addr() == a })
}

// carriesAny reports whether some address of layer 2 lies in a subnet of an interface.
func (m *Machine) carriesAny(i *announce.Interface) bool {
	for a := range m.plan.L2.Owners.All() {
		contains := func(p netip.Prefix) bool { return p.Contains(a) }
		if slices.ContainsFunc(i.Prefixes, contains) || slices.ContainsFunc(i.Routes, contains) {
			return true
		}
	}
	return false
}

// appendHosts adds the addresses of a node that lie in a subnet of own, one of each family.
// It includes deaf interfaces: if all nodes are deaf, an answer ends that.
func appendHosts(hosts []Host, own *announce.Interface, theirs []announce.Interface) []Host {
	has4, has6 := false, false
	for i := range theirs {
		for _, p := range theirs[i].Prefixes {
			a := p.Addr()
			if !theirs[i].Up || a.Is4() && has4 || a.Is6() && has6 || has(own, a) ||
				!slices.ContainsFunc(own.Prefixes, func(o netip.Prefix) bool { return o.Contains(a) }) {
				continue
			}
			has4, has6 = has4 || a.Is4(), has6 || a.Is6()
			hosts = append(hosts, Host{a, theirs[i].MAC})
		}
	}
	return hosts
}
