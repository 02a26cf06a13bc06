package loadbalancer

import (
	"iter"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/api/v1alpha1"
)

// ParseAddress reads an address of an object: whoever spells it as IPv4-mapped
// IPv6 means IPv4, and a zone means nothing beyond one link.
func ParseAddress(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	return a.Unmap().WithZone(""), err == nil
}

// ParseAddresses reads those of texts that are addresses, each once, in the
// order in which they come.
func ParseAddresses(texts []string) []netip.Addr {
	var s addressSet
	for _, text := range texts {
		s.add(text)
	}
	return s.list
}

// Addresses are those in the status of a Service, each once.
func Addresses(svc *corev1.Service) []netip.Addr {
	var s addressSet
	for _, in := range svc.Status.LoadBalancer.Ingress {
		s.add(in.IP)
	}
	return s.list
}

// Listed are the addresses in spec.externalIPs that kube-proxy routes, each
// once.
func Listed(svc *corev1.Service) []netip.Addr { return ParseAddresses(ExternalIPs(svc)) }

// NodeAddresses are those in the status of a Node that are of one of these types, or
// all if none is named, in the order in which the kubelet wrote them.
func NodeAddresses(n *corev1.Node, types ...corev1.NodeAddressType) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) { yieldAddresses(n.Status.Addresses, types, yield) }
}

// yieldAddresses is a function of its own so that a loop over NodeAddresses is inlined and
// allocates nothing: there may be thousands of nodes.
func yieldAddresses(all []corev1.NodeAddress, types []corev1.NodeAddressType, yield func(netip.Addr) bool) {
	for _, in := range all {
		if len(types) > 0 && !slices.Contains(types, in.Type) {
			continue
		}
		if a, ok := ParseAddress(in.Address); ok && !yield(a) {
			return
		}
	}
}

// OnLink are the prefixes that a speaker finds on the link of an interface, and whether
// each is an address of its own, with the length of its network, or only a route.
func OnLink(i *v1alpha1.SpeakerInterface) iter.Seq2[netip.Prefix, bool] {
	return func(yield func(netip.Prefix, bool) bool) {
		if len(i.Addresses)+len(i.Routes) > 0 {
			_ = yieldPrefixes(i.Addresses, yield, func(netip.Prefix) bool { return true }) &&
				yieldPrefixes(i.Routes, yield, func(netip.Prefix) bool { return false })
			return
		}
		// An older speaker has put both into one list, where most routes have no host bits.
		// What may be an own address counts as one: that must never be announced.
		yieldPrefixes(i.Prefixes, yield, func(p netip.Prefix) bool { return p != p.Masked() || p.IsSingleIP() })
	}
}

func yieldPrefixes(texts []string, yield func(netip.Prefix, bool) bool, own func(netip.Prefix) bool) bool {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil && !yield(p, own(p)) {
			return false
		}
	}
	return true
}

// addressSet collects addresses, each once.
type addressSet struct {
	list []netip.Addr
	seen map[netip.Addr]struct{} // nil: they are few
}

// fewAddresses is up to how many a glance at all is quicker than a map.
const fewAddresses = 8

// add adds what text says, if it is an address.
func (s *addressSet) add(text string) {
	a, ok := ParseAddress(text)
	if !ok || s.has(a) {
		return
	}
	s.list = append(s.list, a)
	switch {
	case s.seen != nil:
		s.seen[a] = struct{}{}
	case len(s.list) > fewAddresses:
		s.seen = make(map[netip.Addr]struct{}, 2*len(s.list))
		for _, a := range s.list {
			s.seen[a] = struct{}{}
		}
	}
}

func (s *addressSet) has(a netip.Addr) bool {
	if s.seen == nil {
		return slices.Contains(s.list, a)
	}
	_, has := s.seen[a]
	return has
}
