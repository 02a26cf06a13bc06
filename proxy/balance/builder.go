package balance

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// A builder gathers the candidates of one Service and port.
type builder struct {
	service  *corev1.Service
	port     corev1.ServicePort
	options  Options
	ready    []candidate
	draining []candidate // terminating, still serving
	starting []netip.AddrPort
	silent   int // neither ready nor draining
	portless int // slices with endpoints that lack the port
	refused  []string
}

type candidate struct {
	Endpoint
	zones, nodes []string // topology hints
}

func (b *builder) slice(s *discoveryv1.EndpointSlice) {
	number, ok := b.portOf(s)
	if !ok {
		if len(s.Endpoints) > 0 { // of a Service without pods there is an empty one without ports
			b.portless++
		}
		return
	}
	b.ready = slices.Grow(b.ready, len(s.Endpoints)) // nearly all of them are
	for i := range s.Endpoints {
		b.endpoint(&s.Endpoints[i], s.Namespace, number)
	}
}

// portOf returns the number under which the endpoints of s serve the port.
// Slices carry the name of the Service's port, not its number, because the
// number may differ from pod to pod.
func (b *builder) portOf(s *discoveryv1.EndpointSlice) (uint16, bool) {
	for _, p := range s.Ports {
		if p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP || deref(p.Name, "") != b.port.Name {
			continue
		}
		number := deref(p.Port, 0)
		if number == 0 { // a slice that does not restrict ports: the Service does
			number = cmp.Or(b.port.TargetPort.IntVal, b.port.Port)
		}
		if number < 1 || number > 65535 {
			continue
		}
		return uint16(number), true
	}
	return 0, false
}

func (b *builder) endpoint(e *discoveryv1.Endpoint, namespace string, port uint16) {
	state := loadbalancer.StateOf(e.Conditions)
	if state == loadbalancer.Ended || len(e.Addresses) == 0 {
		b.silent++
		return
	}
	// Addresses beyond the first have no meaning (EndpointSlice's own words).
	addr, err := netip.ParseAddr(e.Addresses[0])
	if err != nil {
		b.refused = append(b.refused, fmt.Sprintf("%s: not an IP address", e.Addresses[0]))
		return
	}
	addr = addr.Unmap()
	if state == loadbalancer.Starting {
		b.silent++
		b.starting = append(b.starting, netip.AddrPortFrom(addr, port))
		return
	}
	if why := b.refuse(addr); why != "" {
		b.refused = append(b.refused, fmt.Sprintf("%s: %s", addr, why))
		return
	}
	c := candidate{Endpoint: Endpoint{
		Addr: netip.AddrPortFrom(addr, port), Node: deref(e.NodeName, ""), Zone: deref(e.Zone, ""),
	}}
	if t := e.TargetRef; t != nil && t.Kind == "Pod" {
		c.Pod = snapshot.Key{Namespace: cmp.Or(t.Namespace, namespace), Name: t.Name}
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			c.zones = append(c.zones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			c.nodes = append(c.nodes, n.Name)
		}
	}
	if state == loadbalancer.Ready {
		b.ready = append(b.ready, c)
	} else {
		b.draining = append(b.draining, c)
	}
}

// refuse keeps a slice that anybody in a namespace can write from turning the
// proxy against itself or the node's metadata service.
func (b *builder) refuse(a netip.Addr) string {
	switch {
	case a.IsLoopback() && !b.options.AllowLoopback:
		return "loopback addresses are refused"
	case a.IsLinkLocalUnicast():
		return "link-local addresses are refused"
	case a.IsUnspecified(), a.IsMulticast(), a.Zone() != "":
		return "not the address of one endpoint"
	}
	return ""
}

func (b *builder) set(node, zone string) *Set {
	s := &Set{Refused: slices.Compact(slices.Sorted(slices.Values(b.refused)))}
	local := b.localPolicy() != ""
	elsewhere := 0
	for _, list := range [][]candidate{b.ready, b.ending()} {
		switch {
		case local:
			here := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return c.Node == "" || c.Node != node })
			elsewhere += len(list) - len(here)
			list = here
		case !s.Draining: // what is left at last may be anywhere
			list = b.nearest(list, node, zone)
		}
		if len(list) > 0 {
			s.Endpoints = unique(list)
			return s
		}
		s.Draining = true
	}
	s.Draining = false
	s.Why = b.why(elsewhere)
	return s
}

// ending are the endpoints that terminate, but for those whose address a pod has got that
// does not: a network may give it away before the Pod object is gone.
func (b *builder) ending() []candidate {
	if len(b.draining) == 0 {
		return nil
	}
	taken := map[netip.AddrPort]bool{}
	for _, c := range b.ready {
		taken[c.Addr] = true
	}
	for _, a := range b.starting {
		taken[a] = true
	}
	return slices.DeleteFunc(b.draining, func(c candidate) bool { return taken[c.Addr] })
}

func (b *builder) why(elsewhere int) string {
	name := b.service.Namespace + "/" + b.service.Name
	switch {
	case elsewhere > 0:
		return fmt.Sprintf("Service %s has %s: Local and no endpoint on this node (%d elsewhere)", name, b.localPolicy(), elsewhere)
	case b.silent > 0:
		return fmt.Sprintf("Service %s has no ready endpoint (%d not ready)", name, b.silent)
	case len(b.refused) > 0:
		return fmt.Sprintf("Service %s has no usable endpoint (%s)", name, b.refused[0])
	case b.portless > 0:
		return fmt.Sprintf("no endpoint of Service %s serves its port %s", name, describePort(b.port))
	case len(b.service.Spec.Selector) == 0:
		return fmt.Sprintf("Service %s has no endpoint and no selector: it needs an EndpointSlice", name)
	}
	return fmt.Sprintf("Service %s has no endpoint", name)
}

// localPolicy names the field that confines us to endpoints of our own node, or
// none. A request that comes from outside the cluster reaches the pod from a pod,
// so both kinds of policy mean it.
func (b *builder) localPolicy() string {
	internal := b.service.Spec.InternalTrafficPolicy
	switch {
	case b.options.AnyNode:
		return ""
	case b.service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal:
		return "externalTrafficPolicy"
	case internal != nil && *internal == corev1.ServiceInternalTrafficPolicyLocal:
		return "internalTrafficPolicy"
	}
	return ""
}

// nearest follows topology hints as kube-proxy does: only if every endpoint has
// one and some are meant for this node or zone. Where nobody gave hints, as in
// slices without a controller, it follows the Service's trafficDistribution.
func (b *builder) nearest(list []candidate, node, zone string) []candidate {
	if near := hinted(list, node, func(c candidate) []string { return c.nodes }); len(near) > 0 {
		return near
	}
	if near := hinted(list, zone, func(c candidate) []string { return c.zones }); len(near) > 0 {
		return near
	}
	distribution := deref(b.service.Spec.TrafficDistribution, "")
	if distribution == "" || slices.ContainsFunc(list, func(c candidate) bool { return len(c.nodes)+len(c.zones) > 0 }) {
		return list
	}
	if distribution == corev1.ServiceTrafficDistributionPreferSameNode {
		if near := placed(list, node, func(c candidate) string { return c.Node }); len(near) > 0 {
			return near
		}
	}
	if near := placed(list, zone, func(c candidate) string { return c.Zone }); len(near) > 0 {
		return near
	}
	return list
}

// hinted returns the candidates with a hint for want, or nil if one has none.
func hinted(list []candidate, want string, hints func(candidate) []string) []candidate {
	var near []candidate
	for _, c := range list {
		if len(hints(c)) == 0 {
			return nil
		}
		if slices.Contains(hints(c), want) {
			near = append(near, c)
		}
	}
	return near
}

// placed returns the candidates at a place that is known.
func placed(list []candidate, at string, place func(candidate) string) []candidate {
	var near []candidate
	for _, c := range list {
		if at != "" && place(c) == at {
			near = append(near, c)
		}
	}
	return near
}

// unique orders list by address and drops what stands in it twice: while a
// controller moves an endpoint from slice to slice it may be in both, and a pod
// of a dual-stack Service is in one slice of each family.
func unique(list []candidate) []Endpoint {
	pods := make(map[snapshot.Key]netip.Addr, len(list))
	endpoints := make([]Endpoint, 0, len(list))
	for _, c := range list {
		if c.Pod != (snapshot.Key{}) {
			if first, known := pods[c.Pod]; known && first.Is4() != c.Addr.Addr().Is4() {
				continue
			}
			pods[c.Pod] = c.Addr.Addr()
		}
		endpoints = append(endpoints, c.Endpoint)
	}
	slices.SortStableFunc(endpoints, func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
	endpoints = slices.CompactFunc(endpoints, func(a, b Endpoint) bool { return a.Addr == b.Addr })
	for i := range endpoints {
		endpoints[i].Health = &Health{}
	}
	return endpoints
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// own returns the Service's own address as a set.
func (b *builder) own() *Set {
	addr, err := netip.ParseAddr(b.service.Spec.ClusterIP)
	if err != nil {
		return &Set{Why: fmt.Sprintf("Service %s/%s has no address of its own, and its route wants that instead of its endpoints", b.service.Namespace, b.service.Name)}
	}
	if why := b.refuse(addr.Unmap()); why != "" {
		return &Set{Why: fmt.Sprintf("the address %s of Service %s/%s: %s", addr, b.service.Namespace, b.service.Name, why)}
	}
	at := netip.AddrPortFrom(addr.Unmap(), uint16(b.port.Port))
	return &Set{Endpoints: []Endpoint{{Addr: at, Health: &Health{}}}}
}
