package explain

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/balance"
)

// address traces an IP address to whoever holds it, at one port or at all.
func (t *tracer) address(ip netip.Addr, port servicePort) {
	holders, listers := t.holders(ip)
	if len(holders)+len(listers) == 0 {
		if !t.unseen("address", snapshot.Service, "who holds "+ip.String()) {
			t.broken("address", "%s", t.unheld(ip))
		}
		return
	}
	if len(holders) > 0 {
		t.works("address", "%s is held by Service %s", ip, keysOf(holders))
	}
	if len(listers) > 0 {
		t.works("address", "%s is in spec.externalIPs of Service %s", ip, keysOf(listers))
	}
	all := slices.Concat(holders, listers)
	t.announced(all[0], ip)
	var only func(corev1.ServicePort) bool
	if port.number > 0 && !t.Embedded { // `up` has ports of its own
		only = port.is
		all = slices.DeleteFunc(all, func(s *corev1.Service) bool { return !port.in(s) })
		if len(all) == 0 {
			t.broken("endpoints", "no Service at %s has port %s%s", ip, port, t.returns(ip))
		}
	}
	for _, s := range all {
		t.endpoints("endpoints", s, ip, only)
		if port.number == 0 {
			t.endsOf(s, ip, nil)
		}
	}
	anyTCP := port.protocol == "" && port.number > 0 && (t.Embedded || slices.ContainsFunc(all, tcp(port.number).in))
	if anyTCP || port.protocol == corev1.ProtocolTCP {
		t.end(ip, uint16(port.number))
	}
}

// holders are the Services with ip in their status, and those that list it in
// spec.externalIPs as far as it is theirs: where nobody holds it, or speakers
// say so. They are ordered by name.
func (t *tracer) holders(ip netip.Addr) (holders, listers []*corev1.Service) {
	for _, s := range t.Cluster.Services.Sorted() {
		if slices.Contains(loadbalancer.Addresses(s), ip) {
			holders = append(holders, s)
		} else if slices.Contains(loadbalancer.ParseAddresses(s.Spec.ExternalIPs), ip) {
			listers = append(listers, s)
		}
	}
	return holders, slices.DeleteFunc(listers, func(s *corev1.Service) bool {
		return len(holders) > 0 && len(t.announcers(snapshot.KeyOf(s), ip)) == 0
	})
}

func keysOf(services []*corev1.Service) string {
	var keys []string
	for _, s := range services {
		keys = append(keys, snapshot.KeyOf(s).String())
	}
	return strings.Join(keys, " and ")
}

// unheld says whose an address is that no Service holds.
func (t *tracer) unheld(ip netip.Addr) string {
	for _, n := range t.Cluster.Nodes.Sorted() {
		for own := range loadbalancer.NodeAddresses(n) {
			if own == ip {
				return fmt.Sprintf("%s is node %s itself, not the address of a Service", ip, n.Name)
			}
		}
	}
	if p := t.poolWith(ip); p != nil {
		t.see(snapshot.IPAddressPool, snapshot.KeyOf(p))
		return fmt.Sprintf("no Service holds %s; it is a free address of pool %s", ip, p.Name)
	}
	return fmt.Sprintf("no Service holds %s, and no pool contains it", ip)
}

// poolWith is the pool that ip belongs to, or nil.
func (t *tracer) poolWith(ip netip.Addr) *v1alpha1.IPAddressPool {
	homes := loadbalancer.HomesOf(t.Cluster.IPAddressPools.Sorted())
	if i := homes.Of(ip); i >= 0 {
		return homes.Pools[i]
	}
	return nil
}

// service traces every address of a Service.
func (t *tracer) service(key snapshot.Key) {
	t.see(snapshot.Service, key)
	s, ok := t.Cluster.Services.Get(key)
	if !ok {
		if !t.unseen("service", snapshot.Service, "Service "+key.String()) {
			t.broken("service", "Service %s does not exist", key)
		}
		return
	}
	kind, listed := cmp.Or(s.Spec.Type, corev1.ServiceTypeClusterIP), loadbalancer.ParseAddresses(s.Spec.ExternalIPs)
	isBalancer := kind == corev1.ServiceTypeLoadBalancer
	if !isBalancer && len(listed) == 0 {
		t.broken("service", "Service %s is of type %s; only LoadBalancer has an external address", key, kind)
		return
	}
	t.works("service", "Service %s is of type %s, externalTrafficPolicy %s", key, kind, policyOf(s))
	addresses := loadbalancer.Addresses(s)
	if len(addresses) == 0 && isBalancer {
		t.broken("address", "%s has none: %s", key, t.whyNone(s))
	}
	for _, ip := range addresses {
		t.given(s, ip)
		t.announced(s, ip)
		t.endpoints("endpoints", s, ip, nil)
		t.endsOf(s, ip, nil)
	}
	for _, ip := range listed {
		t.works("address", "%s in spec.externalIPs", ip)
		t.announced(s, ip)
		t.endpoints("endpoints", s, ip, nil)
		t.endsOf(s, ip, nil)
	}
}

// whyNone says why a Service has no address.
func (t *tracer) whyNone(s *corev1.Service) string {
	c := meta.FindStatusCondition(s.Status.Conditions, assign.ConditionAddress)
	if c == nil && foreign(s, t.Assign) == "" { // what the controller will say of it
		for _, p := range t.Inputs.Problems {
			if p.Object == snapshot.RefOf(s) {
				return p.Reason + ": " + p.Message
			}
		}
	}
	return cmp.Or(waiting(s, t.Assign), "no controller has given one")
}

// given says where an address of s comes from.
func (t *tracer) given(s *corev1.Service, ip netip.Addr) {
	pool := s.Annotations[loadbalancer.AnnotationGiven]
	if pool == "" {
		t.works("address", "%s, given by another controller", ip)
		return
	}
	for _, name := range strings.Split(pool, ",") {
		t.see(snapshot.IPAddressPool, snapshot.Key{Name: name})
	}
	t.works("address", "%s from pool %s", ip, pool)
}

// announced says which nodes answer for ip on the network.
func (t *tracer) announced(s *corev1.Service, ip netip.Addr) {
	key := snapshot.KeyOf(s)
	t.see(snapshot.Service, key)
	var said, lost, unheard []string
	misses := unheardBy(living(t.Cluster, t.missedNodes()))
	for status, a := range t.announcings(key, ip) {
		t.see(snapshot.Node, snapshot.Key{Name: status.Name})
		if t.isMissed(status.Name) {
			lost = append(lost, fmt.Sprintf("node %s announced %s, and its speaker is not alive any more: start its pod", status.Name, ip))
			continue
		}
		announces := fmt.Sprintf("node %s announces %s by %s%s%s", status.Name, ip, a.Protocol, by(a), t.doubts(status))
		if who := misses[announcement{status.Name, ip.String()}]; len(who) > 0 {
			unheard = append(unheard, filtered(announces, who))
		}
		said = append(said, announces)
	}
	routed, down := t.told(ip)
	said = append(said, routed...)
	if len(said) == 0 && len(down) > 0 {
		down = append(down, "see that the node reaches the router, and that both sides have the same spec of the session")
	}
	down = append(lost, down...)
	switch {
	case len(unheard) > 0:
		t.broken("announced", "%s", strings.Join(unheard, "; "))
	case len(said) > 0:
		t.works("announced", "%s", strings.Join(append(said, down...), "; "))
	case len(down) > 0:
		t.broken("announced", "%s", strings.Join(down, "; "))
	case t.Embedded && ip.IsLoopback():
		t.works("announced", "%s is on the loopback interface of this machine", ip)
	case t.Embedded:
		t.unknown("announced", "%s is not on loopback: this machine answers for it with --announce only", ip)
	case isUnreadKind(t.Cluster, snapshot.SpeakerStatus):
		t.unseen("announced", snapshot.SpeakerStatus, "who announces "+ip.String())
	case t.Cluster.SpeakerStatuses.Len() == 0:
		t.broken("announced", "no speaker has written a SpeakerStatus: does the speaker's DaemonSet run?")
	default:
		t.silence(s, ip)
	}
}

// silence says why no speaker announces ip.
func (t *tracer) silence(s *corev1.Service, ip netip.Addr) {
	why, ok := t.problem(snapshot.Service, snapshot.KeyOf(s), ip,
		"OutsidePools", "UnsafeAddress", "DuplicateAddress", "NotAdvertised", "NoEligibleNode", "AddressInUse",
		assign.ReasonAddressOutsidePools, assign.ReasonNodeAddress)
	if p := t.poolWith(ip); p != nil && !ok {
		why, ok = t.problem(snapshot.IPAddressPool, snapshot.KeyOf(p), netip.Addr{}, "NotAdvertised")
		why = "pool " + p.Name + ": " + why
	}
	switch foreign := foreign(s, t.Assign); {
	case foreign != "":
		t.unknown("announced", "%s is announced by whoever gave it: %s", ip, foreign)
	case ok:
		t.broken("announced", "%s", why)
	case t.isCutShort():
		t.unknown("announced", "no speaker names %s, but there is one that announces more than its SpeakerStatus can list", ip)
	case !slices.Contains(loadbalancer.Addresses(s), ip):
		t.broken("announced", "no speaker says that it announces %s: they announce spec.externalIPs only with --external-ips (loadBalancer.externalIPs of the chart)", ip)
	case t.routers().reach.Awaits(ip):
		t.broken("announced", "routers are told of %s once %s has an endpoint that serves it", ip, snapshot.KeyOf(s))
	default:
		t.broken("announced", "no speaker says that it announces %s: %s", ip, t.whoIsMissed())
	}
}

// whoIsMissed says whose speakers to look at.
func (t *tracer) whoIsMissed() string {
	var nodes []string
	for _, status := range t.Cluster.SpeakerStatuses.Sorted() {
		if t.isMissed(status.Name) {
			nodes = append(nodes, status.Name)
		}
	}
	if len(nodes) == 0 {
		return "see what their logs say of it"
	}
	return "that of node " + names(nodes, 5) + " is not alive; start its pod"
}

// told says which nodes tell which routers of ip, and which would if their
// sessions were up.
func (t *tracer) told(ip netip.Addr) (said, down []string) {
	for _, status := range t.Cluster.SpeakerStatuses.Sorted() {
		up, not := t.routers().told(status, ip)
		if len(up)+len(not) > 0 {
			t.see(snapshot.Node, snapshot.Key{Name: status.Name})
		}
		if len(up) > 0 {
			said = append(said, fmt.Sprintf("node %s announces %s by bgp to %s%s", status.Name, ip, strings.Join(up, ", "), t.doubts(status)))
		}
		for _, peer := range slices.Sorted(maps.Keys(not)) {
			t.see(snapshot.BGPPeer, snapshot.Key{Name: peer})
			down = append(down, fmt.Sprintf("node %s has no session with BGPPeer %s: %s", status.Name, peer, not[peer]))
		}
	}
	return said, down
}

// isCutShort reports whether a speaker announces more than its status lists.
func (t *tracer) isCutShort() bool {
	for _, status := range t.Cluster.SpeakerStatuses.All() {
		if status.Status.AnnouncingCount > int64(len(status.Status.Announcing)) && !isOrphan(t.Cluster, status) {
			return true
		}
	}
	return false
}

// announcers are the nodes whose speakers announce ip for a Service.
func (t *tracer) announcers(key snapshot.Key, ip netip.Addr) map[string]bool {
	nodes := map[string]bool{}
	for status := range t.announcings(key, ip) {
		if !t.isMissed(status.Name) {
			nodes[status.Name] = true
		}
	}
	for _, status := range t.Cluster.SpeakerStatuses.Sorted() {
		if up, _ := t.routers().told(status, ip); len(up) > 0 {
			nodes[status.Name] = true
		}
	}
	return nodes
}

// announcings yields what speakers say of ip for a Service, ordered by node.
func (t *tracer) announcings(key snapshot.Key, ip netip.Addr) iter.Seq2[*v1alpha1.SpeakerStatus, v1alpha1.Announcing] {
	return func(yield func(*v1alpha1.SpeakerStatus, v1alpha1.Announcing) bool) {
		for _, status := range t.Cluster.SpeakerStatuses.Sorted() {
			if isOrphan(t.Cluster, status) {
				continue
			}
			for _, a := range status.Status.Announcing {
				said, err := netip.ParseAddr(a.Address)
				if err == nil && said == ip && a.Service == key.String() && !yield(status, a) {
					return
				}
			}
		}
	}
}

func by(a v1alpha1.Announcing) string {
	switch {
	case len(a.Interfaces) > 0:
		return " on " + strings.Join(a.Interfaces, ", ")
	case len(a.Peers) > 0:
		return " to " + strings.Join(a.Peers, ", ")
	}
	return ""
}

// doubts says why a node may soon stop announcing.
func (t *tracer) doubts(status *v1alpha1.SpeakerStatus) string {
	n, known := t.Cluster.Nodes.Get(snapshot.Key{Name: status.Name})
	switch {
	case !known: // nodes are not to be seen from here
		return ""
	case !node(t.Cluster, n).Ready:
		return " (the node is not ready)"
	case status.Status.Leaving:
		return " (it is leaving)"
	}
	return ""
}

// endpoints says for each port of s where its traffic ends; for those alone
// that only names, if it names any.
func (t *tracer) endpoints(link string, s *corev1.Service, ip netip.Addr, only func(corev1.ServicePort) bool) {
	key := snapshot.KeyOf(s)
	t.see(snapshot.Service, key)
	if t.Embedded && slices.Contains(t.Self, key) {
		t.works(link, "%s is served by this process", key)
		return
	}
	if t.Embedded && ip.IsLoopback() {
		t.forwarded(link, s, only)
		return
	}
	t.clients(s, ip)
	near := t.announcers(key, ip)
	local := policyOf(s) == corev1.ServiceExternalTrafficPolicyLocal && len(near) > 0
	for _, port := range s.Spec.Ports {
		if only != nil && !only(port) {
			continue
		}
		t.hop(s, port, false)
		what := portOf(port, key.String())
		n := t.census(key, ip, port, near)
		switch {
		case n.serving() == 0:
			if !t.unseen(link, snapshot.EndpointSlice, what) {
				t.broken(link, "%s: %s", what, n.none(s))
			}
		case local && n.near == 0:
			t.broken(link, "%s: externalTrafficPolicy is Local, and no endpoint is on the announcing node (%s elsewhere)", what, n.counts())
		case local:
			t.works(link, "%s: %s, %d on the announcing node", what, n.counts(), n.near)
		default:
			t.works(link, "%s: %s", what, n.counts())
		}
	}
}

// forwarded is endpoints of an address that `up` listens on, as it forwards.
func (t *tracer) forwarded(link string, s *corev1.Service, only func(corev1.ServicePort) bool) {
	for _, port := range s.Spec.Ports {
		if only != nil && !only(port) {
			continue
		}
		what := portOf(port, snapshot.KeyOf(s).String())
		set := balance.Compile(s, t.Cluster.SlicesOf(snapshot.KeyOf(s)), balance.PortRef{Number: port.Port}, t.Node, "", balance.Options{AllowLoopback: true})
		switch {
		case protocolOf(port) != corev1.ProtocolTCP:
			t.broken(link, "%s: without a cluster only TCP ports are forwarded", what)
		case len(set.Endpoints) == 0:
			t.broken(link, "%s: %s", what, set.Why)
		default:
			t.works(link, "%s: %s", what, endpointsOf(set))
		}
	}
}

// portOf names a port of a Service.
func portOf(p corev1.ServicePort, service string) string {
	h := Hop{Service: service, Port: p.Port, Protocol: protocolOf(p)}
	return h.String()
}

func protocolOf(p corev1.ServicePort) corev1.Protocol { return cmp.Or(p.Protocol, corev1.ProtocolTCP) }

// census counts the endpoints behind a port.
type census struct{ ready, draining, unready, portless, foreign, near int }

// census counts those of a Service for the traffic to ip.
func (t *tracer) census(key snapshot.Key, ip netip.Addr, port corev1.ServicePort, near map[string]bool) (n census) {
	var reached []*discoveryv1.EndpointSlice
	for _, slice := range t.Cluster.SlicesOf(key) {
		if t.reaches(ip, slice) {
			reached = append(reached, slice)
		} else {
			n.foreign += len(slice.Endpoints)
		}
	}
	n.add(reached, &port, near)
	return n
}

// add counts the endpoints of slices of a Service.
func (n *census) add(of []*discoveryv1.EndpointSlice, port *corev1.ServicePort, near map[string]bool) {
	offering := slices.DeleteFunc(slices.Clone(of), func(s *discoveryv1.EndpointSlice) bool {
		if loadbalancer.Offers(s, port) {
			return false
		}
		n.portless += len(s.Endpoints)
		return true
	})
	for e, state := range loadbalancer.States(slices.Values(offering)) {
		switch state {
		case loadbalancer.Ready:
			n.ready++
		case loadbalancer.Draining:
			n.draining++
		default:
			n.unready++
		}
		if state.Serves() && e.NodeName != nil && near[*e.NodeName] {
			n.near++
		}
	}
}

// reaches reports whether the traffic to ip can end in a slice: kube-proxy does
// not cross from one address family to the other. `up` does.
func (t *tracer) reaches(ip netip.Addr, slice *discoveryv1.EndpointSlice) bool {
	family := discoveryv1.AddressTypeIPv4
	if ip.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	return t.Embedded || slice.AddressType == family
}

func (n census) serving() int { return n.ready + n.draining }

func (n census) counts() string {
	text := fmt.Sprintf("%d ready", n.ready)
	if n.draining > 0 {
		text += fmt.Sprintf(", %d terminating", n.draining)
	}
	if n.unready > 0 {
		text += fmt.Sprintf(", %d not ready", n.unready)
	}
	return text
}

// none says why nobody serves.
func (n census) none(s *corev1.Service) string {
	switch {
	case n.unready > 0:
		return fmt.Sprintf("no endpoint is ready (%d are not): see why the readiness probes of its pods fail", n.unready)
	case n.portless > 0:
		return fmt.Sprintf("%d endpoints, and none offers this port: name a port of the pods in targetPort", n.portless)
	case n.foreign > 0:
		return fmt.Sprintf("no endpoint is of this address's family (%d of the other): do the pods have such an address?", n.foreign)
	case len(s.Spec.Selector) == 0:
		return "no endpoint, and no selector that would find pods: give it one, or write its EndpointSlice"
	}
	return "no endpoint: no pod matches the selector " + selector(s) + ", as at zero replicas; start one, or correct the selector"
}

func selector(s *corev1.Service) string {
	var pairs []string
	for k, v := range s.Spec.Selector {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func policyOf(s *corev1.Service) corev1.ServiceExternalTrafficPolicy {
	return cmp.Or(s.Spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
}
