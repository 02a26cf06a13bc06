package announce

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// Asks returns the Services whose endpoints a plan of c may read, sorted. The endpoints of
// other Services change no plan and need not be watched.
func Asks(c *snapshot.Cluster) (services []snapshot.Key) {
	routed := isRouted(c)
	for key, svc := range c.Services.All() {
		if asks(svc, routed) {
			services = append(services, key)
		}
	}
	slices.SortFunc(services, snapshot.Key.Compare)
	return services
}

// AsksForOthers reports whether Asks returns other Services for is than for was. The cost
// is linear in the differences between the two.
func AsksForOthers(was, is *snapshot.Cluster) bool {
	before, after := isRouted(was), isRouted(is)
	return before != after || !alike(was.Services, is.Services, func(a, b *corev1.Service) bool { return asks(a, before) == asks(b, after) })
}

// isRouted reports whether routers may be told of addresses.
func isRouted(c *snapshot.Cluster) bool { return c.BGPAdvertisements.Len() > 0 }

// asks reports whether the nodes of svc's endpoints matter, once it has an address, or, for
// routers, whether there are any.
func asks(svc *corev1.Service, routed bool) bool {
	return svc != nil && (routed || loadbalancer.IsLocal(svc)) &&
		(svc.Spec.Type == corev1.ServiceTypeLoadBalancer || len(loadbalancer.ExternalIPs(svc)) > 0)
}
