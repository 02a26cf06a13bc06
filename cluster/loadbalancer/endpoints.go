package loadbalancer

import discoveryv1 "k8s.io/api/discovery/v1"

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
	switch is := func(p *bool, otherwise bool) bool {
		if p == nil {
			return otherwise
		}
		return *p
	}; {
	case is(c.Ready, true):
		return Ready
	case !is(c.Terminating, false):
		return Starting
	case is(c.Serving, true):
		return Draining
	}
	return Ended
}
