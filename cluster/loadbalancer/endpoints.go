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
