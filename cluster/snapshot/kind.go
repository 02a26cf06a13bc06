package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/api/v1alpha1"
)

// Kind is a kind of object that a Cluster holds.
type Kind int

// The kinds, in the order in which a reader meets them. A new kind is a line
// here, one in Stores and one in table; nothing else lists them all.
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

// Stores are the objects of a Cluster, by kind.
type Stores struct {
	Services          Store[*corev1.Service]
	EndpointSlices    Store[*discoveryv1.EndpointSlice]
	Nodes             Store[*corev1.Node]
	Namespaces        Store[*corev1.Namespace]
	Secrets           Store[*corev1.Secret]
	ConfigMaps        Store[*corev1.ConfigMap]
	Ingresses         Store[*networkingv1.Ingress]
	IngressClasses    Store[*networkingv1.IngressClass]
	IPAddressPools    Store[*v1alpha1.IPAddressPool]
	L2Advertisements  Store[*v1alpha1.L2Advertisement]
	BGPAdvertisements Store[*v1alpha1.BGPAdvertisement]
	BGPPeers          Store[*v1alpha1.BGPPeer]
	BFDProfiles       Store[*v1alpha1.BFDProfile]
	Communities       Store[*v1alpha1.Community]
	SpeakerStatuses   Store[*v1alpha1.SpeakerStatus]
}

// table gives every kind its store and its place in the API.
func (s *Stores) table() [Faults]row {
	core, net, ours := corev1.SchemeGroupVersion, networkingv1.SchemeGroupVersion, v1alpha1.GroupVersion()
	const namespaced, clusterWide = true, false
	return [Faults]row{
		Service:          {&s.Services, core, "services", namespaced, listOf[corev1.ServiceList]},
		EndpointSlice:    {&s.EndpointSlices, discoveryv1.SchemeGroupVersion, "endpointslices", namespaced, listOf[discoveryv1.EndpointSliceList]},
		Node:             {&s.Nodes, core, "nodes", clusterWide, listOf[corev1.NodeList]},
		Namespace:        {&s.Namespaces, core, "namespaces", clusterWide, listOf[corev1.NamespaceList]},
		Secret:           {&s.Secrets, core, "secrets", namespaced, listOf[corev1.SecretList]},
		ConfigMap:        {&s.ConfigMaps, core, "configmaps", namespaced, listOf[corev1.ConfigMapList]},
		Ingress:          {&s.Ingresses, net, "ingresses", namespaced, listOf[networkingv1.IngressList]},
		IngressClass:     {&s.IngressClasses, net, "ingressclasses", clusterWide, listOf[networkingv1.IngressClassList]},
		IPAddressPool:    {&s.IPAddressPools, ours, "ipaddresspools", clusterWide, listOf[v1alpha1.IPAddressPoolList]},
		L2Advertisement:  {&s.L2Advertisements, ours, "l2advertisements", clusterWide, listOf[v1alpha1.L2AdvertisementList]},
		BGPAdvertisement: {&s.BGPAdvertisements, ours, "bgpadvertisements", clusterWide, listOf[v1alpha1.BGPAdvertisementList]},
		BGPPeer:          {&s.BGPPeers, ours, "bgppeers", clusterWide, listOf[v1alpha1.BGPPeerList]},
		BFDProfile:       {&s.BFDProfiles, ours, "bfdprofiles", clusterWide, listOf[v1alpha1.BFDProfileList]},
		Community:        {&s.Communities, ours, "communities", clusterWide, listOf[v1alpha1.CommunityList]},
		SpeakerStatus:    {&s.SpeakerStatuses, ours, "speakerstatuses", clusterWide, listOf[v1alpha1.SpeakerStatusList]},
	}
}

// row is what there is to know about one kind.
type row struct {
	store      anyStore
	group      schema.GroupVersion
	resource   string
	namespaced bool
	list       func() runtime.Object
}

func listOf[L any, P interface {
	*L
	runtime.Object
}]() runtime.Object {
	return P(new(L))
}

// Resource is how the API server speaks of a kind.
type Resource struct {
	Group      schema.GroupVersion
	Name       string // in paths: "services"
	Namespaced bool
	New        func() Object         // an empty object
	NewList    func() runtime.Object // an empty list of them
}

// Resource returns how the API server speaks of k, which must not be Faults.
func (k Kind) Resource() Resource {
	r := new(Stores).table()[k]
	return Resource{r.group, r.resource, r.namespaced, r.store.make, r.list}
}

// String returns the kind as Kubernetes spells it.
func (k Kind) String() string {
	if k == Faults {
		return "Faults"
	}
	return new(Stores).table()[k].store.name()
}

// KindOf returns the kind of o, and false if a Cluster does not hold it.
func KindOf(o Object) (Kind, bool) {
	switch o.(type) { // a cluster has thousands of these, and the table is made anew each time
	case *corev1.Service:
		return Service, true
	case *discoveryv1.EndpointSlice:
		return EndpointSlice, true
	case *networkingv1.Ingress:
		return Ingress, true
	}
	for k, row := range new(Stores).table() {
		if row.store.holds(o) {
			return Kind(k), true
		}
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
