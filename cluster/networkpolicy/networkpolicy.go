package networkpolicy

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Pod is what policies see of a pod.
type Pod struct {
	Namespace, Name string
	Within          labels.Set // the labels of the namespace
	Labels          labels.Set
	Addresses       []netip.Addr
	Ports           []corev1.ContainerPort
	Node            string
	// OnHost says that it uses its node's network: to policies it is the node, which they
	// do not isolate, and which they know by its address alone.
	OnHost bool
}

// Port is the port of a pod that a connection goes to.
type Port struct {
	Number   int32
	Protocol corev1.Protocol
}

// Isolating returns those of some policies that isolate p in a direction.
func Isolating(policies []*networkingv1.NetworkPolicy, p *Pod, direction networkingv1.PolicyType) (isolating []*networkingv1.NetworkPolicy) {
	for _, policy := range policies {
		if !p.OnHost && policy.Namespace == p.Namespace && isAbout(policy, direction) && selects(&policy.Spec.PodSelector, p.Labels) {
			isolating = append(isolating, policy)
		}
	}
	return isolating
}

// isAbout reports whether a policy is about a direction. The API server writes what types it
// has; without any, it is always about what comes in, and about what goes out if it has rules.
func isAbout(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	if len(policy.Spec.PolicyTypes) == 0 {
		return direction == networkingv1.PolicyTypeIngress || len(policy.Spec.Egress) > 0
	}
	return slices.Contains(policy.Spec.PolicyTypes, direction)
}

// LetsIn reports whether a rule of policy, which isolates to, lets connections of from come to
// a port of it.
func LetsIn(policy *networkingv1.NetworkPolicy, from, to *Pod, port Port) bool {
	return slices.ContainsFunc(policy.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
		return has(r.Ports, to, port) && names(r.From, policy.Namespace, from)
	})
}

// LetsOut reports whether a rule of policy, which isolates from, lets connections of it go to
// a port of to.
func LetsOut(policy *networkingv1.NetworkPolicy, from, to *Pod, port Port) bool {
	return slices.ContainsFunc(policy.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
		return has(r.Ports, to, port) && names(r.To, policy.Namespace, to)
	})
}

// Outside returns from which addresses outside of the cluster a policy that isolates to lets
// connections come to a port of it; nil: from none. Those that a range excepts are not taken out.
func Outside(policy *networkingv1.NetworkPolicy, to *Pod, port Port) (ranges []netip.Prefix) {
	for _, r := range policy.Spec.Ingress {
		if !has(r.Ports, to, port) {
			continue
		}
		if len(r.From) == 0 {
			return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
		}
		for _, peer := range r.From {
			if peer.IPBlock == nil {
				continue
			}
			if p, err := netip.ParsePrefix(peer.IPBlock.CIDR); err == nil {
				ranges = append(ranges, p.Masked())
			}
		}
	}
	return ranges
}

// names reports whether one of peers is p; without any, everybody is meant.
func names(peers []networkingv1.NetworkPolicyPeer, namespace string, p *Pod) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool { return Names(&peer, namespace, p) })
}

// Names reports whether a peer in a policy of a namespace is p.
func Names(peer *networkingv1.NetworkPolicyPeer, namespace string, p *Pod) bool {
	switch {
	case peer.IPBlock != nil:
		return slices.ContainsFunc(p.Addresses, func(ip netip.Addr) bool { return contains(peer.IPBlock, ip) })
	case p.OnHost, peer.NamespaceSelector == nil && (peer.PodSelector == nil || namespace != p.Namespace):
		return false
	}
	return (peer.NamespaceSelector == nil || selects(peer.NamespaceSelector, p.Within)) &&
		(peer.PodSelector == nil || selects(peer.PodSelector, p.Labels))
}

// contains reports whether ip is in a block and in none of those that it excepts.
func contains(block *networkingv1.IPBlock, ip netip.Addr) bool {
	in := func(cidr string) bool {
		p, err := netip.ParsePrefix(cidr)
		return err == nil && p.Contains(ip)
	}
	return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}

// has reports whether port of p is one of ports; without any, every port is meant.
func has(ports []networkingv1.NetworkPolicyPort, p *Pod, port Port) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(of networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if of.Protocol != nil {
			protocol = *of.Protocol
		}
		switch {
		case protocol != port.Protocol:
			return false
		case of.Port == nil:
			return true
		case of.Port.StrVal != "":
			named, ok := p.named(of.Port.StrVal, protocol)
			return ok && named == port.Number
		case of.EndPort != nil:
			return of.Port.IntVal <= port.Number && port.Number <= *of.EndPort
		}
		return of.Port.IntVal == port.Number
	})
}

// named is the number of the port of p that has a name.
func (p *Pod) named(name string, protocol corev1.Protocol) (number int32, ok bool) {
	i := slices.IndexFunc(p.Ports, func(c corev1.ContainerPort) bool {
		return c.Name == name && cmp.Or(c.Protocol, corev1.ProtocolTCP) == protocol
	})
	if i < 0 {
		return 0, false
	}
	return p.Ports[i].ContainerPort, true
}

func selects(s *metav1.LabelSelector, of labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(of)
}
