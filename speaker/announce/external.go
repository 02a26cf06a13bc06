package announce

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
)

// readExternal adds the addresses in spec.externalIPs. A Service that has an address in
// its status, of any class, comes before those that only list it, and among these the
// oldest comes first. The allocator applies the same rules, and reports the Services
// whose addresses are not announced.
func (k *compiler) readExternal(byAddr map[netip.Addr]*holding) {
	var listers []*corev1.Service
	held := map[netip.Addr]*holders{} // by every listed address
	for _, svc := range k.c.Services.All() {
		for _, a := range loadbalancer.Listed(svc) {
			if len(listers) == 0 || listers[len(listers)-1] != svc {
				listers = append(listers, svc)
			}
			held[a] = &holders{}
		}
	}
	if len(listers) == 0 {
		return
	}
	for _, svc := range k.c.Services.All() {
		for _, a := range loadbalancer.Addresses(svc) {
			if h, listed := held[a]; listed {
				h.add(svc)
			}
		}
	}
	slices.SortFunc(listers, older)
	for _, svc := range listers {
		own := map[netip.Addr]struct{}{}
		for _, a := range loadbalancer.Addresses(svc) {
			own[a] = struct{}{}
		}
		for _, a := range loadbalancer.Listed(svc) {
			pool := k.homes.Of(a)
			_, has := own[a]
			if h := byAddr[a]; pool >= 0 && !has && !held[a].bar(svc) && (h == nil || h.conflict(svc) == nil) {
				k.addUser(byAddr, svc, a, pool, "spec.externalIPs lists")
			}
		}
	}
}

// holders are the Services that have one address in their status.
type holders struct {
	holding
	unshared bool // they may not share it, so no other Service may join
}

func (h *holders) add(svc *corev1.Service) {
	h.unshared = h.unshared || len(h.users) > 0 && !loadbalancer.Alike(h.users[0].svc, svc)
	h.attach(user{svc: svc})
}

// bar reports whether svc, which lists the address, may not use it.
func (h *holders) bar(svc *corev1.Service) bool {
	return h.unshared || h.conflict(svc) != nil
}
