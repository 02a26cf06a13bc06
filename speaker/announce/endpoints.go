package announce

import (
	"iter"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// hasNoEndpoint reports whether no endpoint, on whatever node, is ready or still serves.
func hasNoEndpoint(c *snapshot.Cluster, q question) bool {
	for _, state := range endpointStates(c, q) {
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
	for e, state := range endpointStates(c, q) {
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

// endpointStates are the endpoints of a Service in one family, and how each is. One that is
// terminating has ended where another has its address that is not: a network may give that to
// a new pod before the object of the old one is gone, and kube-proxy knows it as the new one's.
func endpointStates(c *snapshot.Cluster, q question) iter.Seq2[*discoveryv1.Endpoint, loadbalancer.EndpointState] {
	return func(yield func(*discoveryv1.Endpoint, loadbalancer.EndpointState) bool) {
		var taken map[string]bool
		for s := range slicesOf(c, q) {
			for i := range s.Endpoints {
				e := &s.Endpoints[i]
				state := loadbalancer.StateOf(e.Conditions)
				if state == loadbalancer.Draining && len(e.Addresses) > 0 {
					if taken == nil {
						taken = addressesThatStay(c, q)
					}
					if taken[e.Addresses[0]] {
						state = loadbalancer.Ended
					}
				}
				if !yield(e, state) {
					return
				}
			}
		}
	}
}

// addressesThatStay are those of endpoints that do not terminate.
func addressesThatStay(c *snapshot.Cluster, q question) map[string]bool {
	stay := map[string]bool{}
	for s := range slicesOf(c, q) {
		for _, e := range s.Endpoints {
			if state := loadbalancer.StateOf(e.Conditions); len(e.Addresses) > 0 && (state == loadbalancer.Ready || state == loadbalancer.Starting) {
				stay[e.Addresses[0]] = true
			}
		}
	}
	return stay
}

// slicesOf are the EndpointSlices of a Service that are of one family.
func slicesOf(c *snapshot.Cluster, q question) iter.Seq[*discoveryv1.EndpointSlice] {
	family := discoveryv1.AddressTypeIPv4
	if q.is6 {
		family = discoveryv1.AddressTypeIPv6
	}
	return func(yield func(*discoveryv1.EndpointSlice) bool) {
		for _, s := range c.SlicesOf(q.service) {
			if s.AddressType == family && !yield(s) {
				return
			}
		}
	}
}
