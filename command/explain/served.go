package explain

import (
	"fmt"
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

// none says why ports of a Service have no endpoint that serves; empty: each has one, or there
// is no port.
func none(c *snapshot.Cluster, s *corev1.Service) (why string) {
	of := c.SlicesOf(snapshot.KeyOf(s))
	var lacking []string
	unready := 0
	for _, port := range s.Spec.Ports {
		var n census
		if n.add(of, &port, nil); n.serving() > 0 {
			continue
		}
		lacking = append(lacking, fmt.Sprintf("%d/%s", port.Port, protocolOf(port)))
		if why == "" || n.unready > unready { // the pods that come next
			why, unready = n.none(s), n.unready
		}
	}
	if len(lacking) < len(s.Spec.Ports) && len(lacking) > 0 {
		return "at port " + names(lacking, 5) + ": " + why
	}
	return why
}
