package loadbalancer

import (
	"cmp"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// EndpointState is what the conditions of an endpoint come to.
type EndpointState uint8

const (
	Starting EndpointState = iota // it may become ready
	Ready                         // it takes traffic
	Draining                      // it terminates, and takes traffic while none is ready (KEP-1669)
	Ended                         // it terminates, and takes no traffic any more
)

// StateOf reads conditions as kube-proxy does. What they leave out is ready, serving and not
// terminating.
func StateOf(c discoveryv1.EndpointConditions) EndpointState {
	switch {
	case c.Ready == nil || *c.Ready:
		return Ready
	case c.Terminating == nil || !*c.Terminating:
		return Starting
	case c.Serving == nil || *c.Serving:
		return Draining
	}
	return Ended
}

// Serves reports whether an endpoint takes traffic, be it while none is ready.
func (s EndpointState) Serves() bool { return s == Ready || s == Draining }

// States are the endpoints of one Service in one family, and how each is. One that is terminating
// has ended where another has its address that is not: a network may give that to a new pod
// before the object of the old one is gone, and kube-proxy knows it as the new one's.
func States(slices iter.Seq[*discoveryv1.EndpointSlice]) iter.Seq2[*discoveryv1.Endpoint, EndpointState] {
	return func(yield func(*discoveryv1.Endpoint, EndpointState) bool) {
		var taken map[string]bool
		for s := range slices {
			for i := range s.Endpoints {
				e := &s.Endpoints[i]
				state := StateOf(e.Conditions)
				if state == Draining && len(e.Addresses) > 0 {
					if taken == nil {
						taken = addressesThatStay(slices)
					}
					if taken[e.Addresses[0]] {
						state = Ended
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
func addressesThatStay(slices iter.Seq[*discoveryv1.EndpointSlice]) map[string]bool {
	stay := map[string]bool{}
	for s := range slices {
		for _, e := range s.Endpoints {
			if state := StateOf(e.Conditions); len(e.Addresses) > 0 && (state == Ready || state == Starting) {
				stay[e.Addresses[0]] = true
			}
		}
	}
	return stay
}

// Offers reports whether the endpoints of a slice serve a port of their Service by kube-proxy: its
// name and its protocol are theirs, and they say by which number. Pods that have no port of the
// name that is the Service's targetPort are in a slice that offers none.
func Offers(s *discoveryv1.EndpointSlice, port *corev1.ServicePort) bool {
	return slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool {
		named := p.Name != nil && *p.Name == port.Name || p.Name == nil && port.Name == ""
		return named && p.Port != nil && *p.Port != 0 && (p.Protocol == nil || *p.Protocol == cmp.Or(port.Protocol, corev1.ProtocolTCP))
	})
}
