package announce

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// unknownToKubeProxy is the reason of problems that come from asking this node's
// kube-proxy.
const unknownToKubeProxy = "EndpointsUnknownToKubeProxy"

// isDropped reports whether the kube-proxy of node me would drop packets to h: it answers
// that it has no endpoint on the node, while the cluster has a ready one there, and has
// done so for longer than it takes to learn of it. No answer proves nothing, and neither
// does an unhealthy kube-proxy: it still forwards.
func (k *compiler) isDropped(h *holding, me int) (dropped bool) {
	for i := range h.users {
		svc := h.users[i].svc
		since, says := k.hasNone(svc, h.addr)
		if here := k.plan.L2.Since[h.addr]; !here.IsZero() && here.Before(since) {
			since = here
		}
		switch from := since.Add(Settling); {
		case !says:
		case from.After(k.now):
			k.wakeAt(from)
		default:
			dropped = true
			k.problem(snapshot.RefOf(svc), unknownToKubeProxy, fmt.Sprintf("node %s has a ready endpoint, and its kube-proxy says that it has none: %s is not announced to routers from there until it does", k.nodes[me].name, h.addr))
		}
	}
	return dropped
}

// hasNone has this node's kube-proxy asked, and returns since when it says that it has no
// endpoint of a Service here; false: it does not say so, or not yet.
func (k *compiler) hasNone(svc *corev1.Service, a netip.Addr) (since time.Time, says bool) {
	at := k.healthCheck(svc, a)
	if !at.IsValid() {
		return time.Time{}, false
	}
	k.plan.Checks[at] = snapshot.KeyOf(svc)
	since, says = k.view.Unserved[at]
	return since, says
}

// healthCheck is where kube-proxy serves the health check of a Service on this node, in
// the family of a; invalid: nowhere.
func (k *compiler) healthCheck(svc *corev1.Service, a netip.Addr) netip.AddrPort {
	port := svc.Spec.HealthCheckNodePort
	n, exists := k.c.Nodes.Get(nodeKey(k.me))
	if port < 1 || port > 65535 || !exists || !loadbalancer.IsLocal(svc) {
		return netip.AddrPort{}
	}
	for ip := range loadbalancer.NodeAddresses(n, corev1.NodeInternalIP) {
		if ip.Is4() == a.Is4() {
			return netip.AddrPortFrom(ip, uint16(port))
		}
	}
	return netip.AddrPort{}
}
