package manifest

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// complete sets what the API server would set in an object that lacks it, as
// far as Quayside reads it.
func complete(o snapshot.Object, namespaced bool) {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as a typed client returns it
	if namespaced {
		if o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
	} else {
		o.SetNamespace("")
	}
	switch o := o.(type) {
	case *corev1.Service:
		completeService(o)
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			o.Ports[i].Name = or(o.Ports[i].Name, "")
			o.Ports[i].Protocol = or(o.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	case *corev1.Secret:
		completeSecret(o)
	case *v1alpha1.IPAddressPool:
		o.Spec.AutoAssign = or(o.Spec.AutoAssign, true)
	case *v1alpha1.BGPAdvertisement:
		o.Spec.AggregationLength = or(o.Spec.AggregationLength, 32)
		o.Spec.AggregationLengthV6 = or(o.Spec.AggregationLengthV6, 128)
	case *v1alpha1.BGPPeer:
		if o.Spec.Port == 0 {
			o.Spec.Port = 179
		}
	}
}

func completeService(s *corev1.Service) {
	if s.Spec.Type == "" {
		s.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	external := s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort
	if external && s.Spec.ExternalTrafficPolicy == "" {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	s.Spec.IPFamilyPolicy = or(s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.Spec.IPFamilies) == 0 && s.Spec.Type != corev1.ServiceTypeExternalName {
		s.Spec.IPFamilies = families(s)
	}
}

// families are those of the cluster IPs; without any, the machine is taken for
// a cluster of both families whose first is IPv4.
func families(s *corev1.Service) []corev1.IPFamily {
	var list []corev1.IPFamily
	for _, text := range s.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() {
			list = append(list, corev1.IPv4Protocol)
		} else if err == nil {
			list = append(list, corev1.IPv6Protocol)
		}
	}
	switch {
	case len(list) > 0:
		return list
	case *s.Spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack:
		return []corev1.IPFamily{corev1.IPv4Protocol}
	default:
		return []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
}

func completeSecret(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for k, v := range s.StringData {
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}

// or returns p, or a pointer to v if p is nil.
func or[V any](p *V, v V) *V {
	if p == nil {
		return &v
	}
	return p
}
