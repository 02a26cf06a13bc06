package snapshot

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"quayside.io/api/v1alpha1"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Cluster is everything known about the cluster at one moment. It is immutable;
// With and Without return the next one. The zero value and a nil pointer's
// zero value are an empty cluster.
type Cluster struct {
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

	// Faults are problems of the source itself: a file that does not parse, an
	// object that cannot be decoded. The last good version stays in force.
	Faults []Problem

	slicesOf   Store[[]*discoveryv1.EndpointSlice] // by the Service they belong to
	generation [numKinds]uint64
}

// Of returns a Cluster of objects. It panics on an object of a kind that
// Cluster does not hold; KindOf tells beforehand.
func Of(objects ...Object) *Cluster { return (&Cluster{}).With(objects...) }

// Generation counts the changes of a kind. Two snapshots of one history with
// equal generations hold the same objects of that kind.
func (c *Cluster) Generation(k Kind) uint64 { return c.generation[k] }

// Changed reports whether any of kinds differs between c and old, which may be nil.
func (c *Cluster) Changed(old *Cluster, kinds ...Kind) bool {
	return old == nil || slices.ContainsFunc(kinds, func(k Kind) bool {
		return c.generation[k] != old.generation[k]
	})
}

// SlicesOf returns the EndpointSlices of a Service, ordered by name. The
// result must not be modified.
func (c *Cluster) SlicesOf(service Key) []*discoveryv1.EndpointSlice {
	list, _ := c.slicesOf.Get(service)
	return list
}

// With returns a Cluster in which each of objects stands in its newest version.
func (c *Cluster) With(objects ...Object) *Cluster {
	n := *c
	for _, o := range objects {
		k := KeyOf(o)
		switch o := o.(type) {
		case *corev1.Service:
			n.Services = n.Services.With(k, o)
		case *discoveryv1.EndpointSlice:
			n.unindexSlice(k)
			n.EndpointSlices = n.EndpointSlices.With(k, o)
			n.indexSlice(o)
		case *corev1.Node:
			n.Nodes = n.Nodes.With(k, o)
		case *corev1.Namespace:
			n.Namespaces = n.Namespaces.With(k, o)
		case *corev1.Secret:
			n.Secrets = n.Secrets.With(k, o)
		case *corev1.ConfigMap:
			n.ConfigMaps = n.ConfigMaps.With(k, o)
		case *networkingv1.Ingress:
			n.Ingresses = n.Ingresses.With(k, o)
		case *networkingv1.IngressClass:
			n.IngressClasses = n.IngressClasses.With(k, o)
		case *v1alpha1.IPAddressPool:
			n.IPAddressPools = n.IPAddressPools.With(k, o)
		case *v1alpha1.L2Advertisement:
			n.L2Advertisements = n.L2Advertisements.With(k, o)
		case *v1alpha1.BGPAdvertisement:
			n.BGPAdvertisements = n.BGPAdvertisements.With(k, o)
		case *v1alpha1.BGPPeer:
			n.BGPPeers = n.BGPPeers.With(k, o)
		case *v1alpha1.BFDProfile:
			n.BFDProfiles = n.BFDProfiles.With(k, o)
		case *v1alpha1.Community:
			n.Communities = n.Communities.With(k, o)
		case *v1alpha1.SpeakerStatus:
			n.SpeakerStatuses = n.SpeakerStatuses.With(k, o)
		default:
			panic(fmt.Sprintf("snapshot: no place for a %T", o))
		}
		kind, _ := KindOf(o)
		n.generation[kind]++
	}
	return &n
}

// Without returns a Cluster that lacks the object of that kind and key.
func (c *Cluster) Without(kind Kind, k Key) *Cluster {
	n := *c
	switch kind {
	case Service:
		n.Services = n.Services.Without(k)
	case EndpointSlice:
		n.unindexSlice(k)
		n.EndpointSlices = n.EndpointSlices.Without(k)
	case Node:
		n.Nodes = n.Nodes.Without(k)
	case Namespace:
		n.Namespaces = n.Namespaces.Without(k)
	case Secret:
		n.Secrets = n.Secrets.Without(k)
	case ConfigMap:
		n.ConfigMaps = n.ConfigMaps.Without(k)
	case Ingress:
		n.Ingresses = n.Ingresses.Without(k)
	case IngressClass:
		n.IngressClasses = n.IngressClasses.Without(k)
	case IPAddressPool:
		n.IPAddressPools = n.IPAddressPools.Without(k)
	case L2Advertisement:
		n.L2Advertisements = n.L2Advertisements.Without(k)
	case BGPAdvertisement:
		n.BGPAdvertisements = n.BGPAdvertisements.Without(k)
	case BGPPeer:
		n.BGPPeers = n.BGPPeers.Without(k)
	case BFDProfile:
		n.BFDProfiles = n.BFDProfiles.Without(k)
	case Community:
		n.Communities = n.Communities.Without(k)
	case SpeakerStatus:
		n.SpeakerStatuses = n.SpeakerStatuses.Without(k)
	}
	n.generation[kind]++
	return &n
}

// WithFaults returns a Cluster whose source has exactly these problems.
func (c *Cluster) WithFaults(faults []Problem) *Cluster {
	n := *c
	n.Faults = faults
	n.generation[Faults]++
	return &n
}

func serviceOf(s *discoveryv1.EndpointSlice) (Key, bool) {
	name := s.Labels[discoveryv1.LabelServiceName]
	return Key{s.Namespace, name}, name != ""
}

func (c *Cluster) indexSlice(s *discoveryv1.EndpointSlice) {
	if service, ok := serviceOf(s); ok {
		list := slices.Clone(c.SlicesOf(service))
		i, _ := slices.BinarySearchFunc(list, s.Name, func(s *discoveryv1.EndpointSlice, name string) int {
			return Key{Name: s.Name}.Compare(Key{Name: name})
		})
		c.slicesOf = c.slicesOf.With(service, slices.Insert(list, i, s))
	}
}

func (c *Cluster) unindexSlice(k Key) {
	old, ok := c.EndpointSlices.Get(k)
	if !ok {
		return
	}
	service, ok := serviceOf(old)
	if !ok {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(c.SlicesOf(service)), func(s *discoveryv1.EndpointSlice) bool {
		return s.Name == old.Name
	})
	if len(rest) == 0 {
		c.slicesOf = c.slicesOf.Without(service)
	} else {
		c.slicesOf = c.slicesOf.With(service, rest)
	}
}
