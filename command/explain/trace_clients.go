package explain

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// clients says from where kube-proxy lets clients in at ip, which a Service has by its
// status. Who is not let in gets no answer, as if nobody announced the address.
func (t *tracer) clients(s *corev1.Service, ip netip.Addr) {
	if t.Embedded || len(s.Spec.LoadBalancerSourceRanges) == 0 || !slices.Contains(loadbalancer.Addresses(s), ip) {
		return
	}
	ranges := rangesFor(s, ip)
	everybody := slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Bits() == 0 })
	switch key := snapshot.KeyOf(s); {
	case everybody:
	case len(ranges) == 0:
		t.works("clients", "kube-proxy lets everybody in at %s: spec.loadBalancerSourceRanges of %s names no range of its family", ip, key)
	default:
		t.works("clients", "from %s alone, by spec.loadBalancerSourceRanges of %s: kube-proxy drops what others send", names(textsOf(ranges), 10), key)
	}
}

func textsOf(ranges []netip.Prefix) (texts []string) {
	for _, p := range ranges {
		texts = append(texts, p.String())
	}
	return texts
}

// rangesFor are the ranges that a Service names of the family of ip, as kube-proxy reads them.
func rangesFor(s *corev1.Service, ip netip.Addr) (ranges []netip.Prefix) {
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && p.Addr().Is4() == ip.Is4() {
			ranges = append(ranges, p.Masked())
		}
	}
	return ranges
}
