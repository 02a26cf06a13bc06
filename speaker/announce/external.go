package announce

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// readExternal adds the addresses in spec.externalIPs. Whoever has an address
// by status, of whatever class, comes before those who only list it; among
// these the oldest comes first. The allocator judges the same way, and tells
// the Services whose addresses are not announced.
func (k *compiler) readExternal(byAddr map[netip.Addr]*address) {
	var listers []*corev1.Service
	holders := map[netip.Addr][]*corev1.Service{} // by status, of what anybody lists
	for _, svc := range k.c.Services.All() {
		for _, a := range externalAddresses(svc) {
			if len(listers) == 0 || listers[len(listers)-1] != svc {
				listers = append(listers, svc)
			}
			holders[a] = nil
		}
	}
	if len(listers) == 0 {
		return
	}
	for _, svc := range k.c.Services.All() {
		for _, a := range statusAddresses(svc) {
			if list, listed := holders[a]; listed {
				holders[a] = append(list, svc)
			}
		}
	}
	slices.SortFunc(listers, older)
	for _, svc := range listers {
		for _, a := range externalAddresses(svc) {
			where, ok := k.poolOf(a)
			barred := slices.ContainsFunc(holders[a], func(o *corev1.Service) bool { return o == svc || !mayShare(o, svc) })
			if e := byAddr[a]; ok && !barred && (e == nil || e.conflict(svc) == nil) {
				k.addUser(byAddr, svc, a, where, "spec.externalIPs lists")
			}
		}
	}
}

// externalAddresses returns what kube-proxy routes to a Service beyond its own
// addresses. It needs a cluster IP, which only files may leave open.
func externalAddresses(svc *corev1.Service) []netip.Addr {
	if svc.Spec.Type == corev1.ServiceTypeExternalName || svc.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	var out addresses
	for _, text := range svc.Spec.ExternalIPs {
		out.add(text)
	}
	return out.list
}
