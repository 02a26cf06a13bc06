package announce

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// hasNoEndpoint reports whether no endpoint, on whatever node, is ready or still serves.
func hasNoEndpoint(c *snapshot.Cluster, q question) bool {
	for _, state := range loadbalancer.States(slicesOf(c, q)) {
		if state.Serves() {
			return false
		}
	}
	return true
}

// endpointNodes returns the nodes with an endpoint that is ready, with one that is
// terminating and still serves, and with one that is neither ready nor terminating, each
// sorted.
func endpointNodes(c *snapshot.Cluster, q question, nodeIndex map[string]int) (ready, ending, starting []int) {
	ready = []int{}
	for e, state := range loadbalancer.States(slicesOf(c, q)) {
		if e.NodeName == nil {
			continue
		}
		i, exists := nodeIndex[*e.NodeName]
		if !exists { // no node can serve it locally
			continue
		}
		switch state {
		case loadbalancer.Ready:
			ready = append(ready, i)
		case loadbalancer.Draining:
			ending = append(ending, i)
		case loadbalancer.Starting:
			starting = append(starting, i)
		}
	}
	return distinct(ready), distinct(ending), distinct(starting)
}

// slicesOf are the EndpointSlices of a Service that are of one family and serve one of its
// ports. Where pods lack them all, kube-proxy drops what comes, however ready they are.
func slicesOf(c *snapshot.Cluster, q question) iter.Seq[*discoveryv1.EndpointSlice] {
	family := discoveryv1.AddressTypeIPv4
	if q.is6 {
		family = discoveryv1.AddressTypeIPv6
	}
	return func(yield func(*discoveryv1.EndpointSlice) bool) {
		svc, exists := c.Services.Get(q.service)
		if !exists {
			return
		}
		for _, s := range c.SlicesOf(q.service) {
			if s.AddressType == family && serves(s, svc) && !yield(s) {
				return
			}
		}
	}
}

// serves reports whether the endpoints of a slice have a port of their Service.
func serves(s *discoveryv1.EndpointSlice, svc *corev1.Service) bool {
	for i := range svc.Spec.Ports {
		if loadbalancer.Offers(s, &svc.Spec.Ports[i]) {
			return true
		}
	}
	return false
}
