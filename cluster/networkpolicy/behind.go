package networkpolicy

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Behind is what stands behind a Service.
type Behind struct {
	Service  *corev1.Service
	Pods     []Pod
	Policies []*networkingv1.NetworkPolicy // of its namespace
}

// PodOf is p, in a namespace of these labels.
func PodOf(p *corev1.Pod, within labels.Set) Pod {
	pod := Pod{Namespace: p.Namespace, Name: p.Name, Within: within, Labels: p.Labels, Node: p.Spec.NodeName, OnHost: p.Spec.HostNetwork}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			pod.Addresses = append(pod.Addresses, a.Unmap())
		}
	}
	for i := range p.Spec.Containers {
		pod.Ports = append(pod.Ports, p.Spec.Containers[i].Ports...)
	}
	return pod
}

// Target is the port of a pod to which a port of the Service leads; false: the Service has
// no such port, or the pod none of its name.
func (b *Behind) Target(p *Pod, number int32, protocol corev1.Protocol) (Port, bool) {
	i := slices.IndexFunc(b.Service.Spec.Ports, func(s corev1.ServicePort) bool {
		return s.Port == number && cmp.Or(s.Protocol, corev1.ProtocolTCP) == protocol
	})
	if i < 0 {
		return Port{}, false
	}
	to := b.Service.Spec.Ports[i].TargetPort
	if to.Type == intstr.String {
		named, ok := p.named(to.StrVal, protocol)
		return Port{named, protocol}, ok
	}
	return Port{cmp.Or(to.IntVal, number), protocol}, true
}
