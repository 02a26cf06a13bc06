package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/api/v1alpha1"
)

// Kind is a kind of object that a Cluster holds.
type Kind int

// The kinds, in the order in which a reader meets them.
const (
	Service Kind = iota
	EndpointSlice
	Node
	Namespace
	Secret
	ConfigMap
	Ingress
	IngressClass
	IPAddressPool
	L2Advertisement
	BGPAdvertisement
	BGPPeer
	BFDProfile
	Community
	SpeakerStatus
	Faults // not an object: Cluster.Faults
	numKinds
)

// String returns the kind as Kubernetes spells it.
func (k Kind) String() string {
	return [numKinds]string{
		"Service", "EndpointSlice", "Node", "Namespace", "Secret", "ConfigMap",
		"Ingress", "IngressClass", "IPAddressPool", "L2Advertisement",
		"BGPAdvertisement", "BGPPeer", "BFDProfile", "Community", "SpeakerStatus",
		"Faults",
	}[k]
}

// KindOf returns the kind of o, and false if a Cluster does not hold it.
func KindOf(o Object) (Kind, bool) {
	switch o.(type) {
	case *corev1.Service:
		return Service, true
	case *discoveryv1.EndpointSlice:
		return EndpointSlice, true
	case *corev1.Node:
		return Node, true
	case *corev1.Namespace:
		return Namespace, true
	case *corev1.Secret:
		return Secret, true
	case *corev1.ConfigMap:
		return ConfigMap, true
	case *networkingv1.Ingress:
		return Ingress, true
	case *networkingv1.IngressClass:
		return IngressClass, true
	case *v1alpha1.IPAddressPool:
		return IPAddressPool, true
	case *v1alpha1.L2Advertisement:
		return L2Advertisement, true
	case *v1alpha1.BGPAdvertisement:
		return BGPAdvertisement, true
	case *v1alpha1.BGPPeer:
		return BGPPeer, true
	case *v1alpha1.BFDProfile:
		return BFDProfile, true
	case *v1alpha1.Community:
		return Community, true
	case *v1alpha1.SpeakerStatus:
		return SpeakerStatus, true
	}
	return 0, false
}

// KeyOf returns the key of o.
func KeyOf(o Object) Key { return Key{o.GetNamespace(), o.GetName()} }

// RefOf names o. Objects that a Cluster does not hold are named by their own
// TypeMeta.
func RefOf(o Object) Ref {
	if kind, ok := KindOf(o); ok {
		return Ref{kind.String(), KeyOf(o)}
	}
	return Ref{o.GetObjectKind().GroupVersionKind().Kind, KeyOf(o)}
}
