package assign

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
)

// readNodes collects the nodes' own addresses, which nobody is given. Loopback is not
// among them: a machine without a network is known by it, and a demo serves there.
func (w *work) readNodes() {
	clear(w.nodes)
	for key, node := range w.c.Nodes.All() {
		for a := range loadbalancer.NodeAddresses(node, corev1.NodeInternalIP, corev1.NodeExternalIP) {
			if !a.IsLoopback() {
				w.exclude(w.nodes, a, key.Name)
			}
		}
	}
	w.readLinks()
}

// readLinks collects what speakers say about interfaces and gateways: a Node
// object names one address per family, and a node may have many. A speaker's word bars new
// assignments only. It may be old, and other software puts addresses of Services
// on interfaces: nobody loses an address for that.
func (w *work) readLinks() {
	clear(w.links)
	for key, status := range w.c.SpeakerStatuses.All() {
		for _, link := range status.Status.Interfaces {
			for p, own := range loadbalancer.OnLink(&link) {
				if own && w.pools.poolOf(p.Addr().Unmap()) != nil {
					w.exclude(w.links, p.Addr().Unmap(), fmt.Sprintf("the own address of interface %s of node %s", link.Name, key.Name))
				}
			}
			for _, text := range link.Gateways {
				if a, err := netip.ParseAddr(text); err == nil && w.pools.poolOf(a.Unmap()) != nil {
					w.exclude(w.links, a.Unmap(), "a gateway of node "+key.Name)
				}
			}
		}
	}
}

// exclude keeps an address from being given away. Where several have it, the
// same one is named every time.
func (w *work) exclude(from map[netip.Addr]string, a netip.Addr, whose string) {
	if known, ok := from[a]; !ok || whose < known {
		from[a] = whose
	}
	w.pools.allocations.Exclude(a)
}
