package explain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
)

// unserved returns what says why the traffic of a Service ends nowhere: of one of type
// LoadBalancer, and of one that a route of the inputs leads to. Nobody did wrong where a
// Service has no pods, so it is no Problem.
func unserved(inputs Inputs) func(*corev1.Service) string {
	backends := map[snapshot.Key]bool{}
	if inputs.Routes != nil {
		for _, b := range inputs.Routes.Backends {
			backends[b.Service] = true
		}
	}
	unread := isUnreadKind(inputs.Cluster, snapshot.EndpointSlice)
	return func(s *corev1.Service) string {
		balanced := s.Spec.Type == corev1.ServiceTypeLoadBalancer
		key := snapshot.KeyOf(s)
		switch {
		case unread, !balanced && !backends[key], s.Spec.Type == corev1.ServiceTypeExternalName:
			return ""
		case inputs.Embedded && slices.Contains(inputs.Self, key): // this process serves it
			return ""
		}
		return none(inputs.Cluster, s)
	}
}

// none says why no port of a Service has an endpoint that serves; empty: one has, or
// there is no port.
func none(c *snapshot.Cluster, s *corev1.Service) string {
	if len(s.Spec.Ports) == 0 {
		return ""
	}
	var n census
	for _, slice := range c.SlicesOf(snapshot.KeyOf(s)) {
		for _, port := range s.Spec.Ports {
			n.add(slice, port, nil)
		}
	}
	if n.serving() > 0 {
		return ""
	}
	// An endpoint was counted for each port.
	n.unready = (n.unready + len(s.Spec.Ports) - 1) / len(s.Spec.Ports)
	n.portless = (n.portless + len(s.Spec.Ports) - 1) / len(s.Spec.Ports)
	return n.none(s)
}
