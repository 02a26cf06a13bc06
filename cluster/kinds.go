package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// resource is how the API server speaks of a kind.
type resource struct {
	group      schema.GroupVersion
	name       string // in paths
	namespaced bool
	object     func() snapshot.Object
	list       func() runtime.Object
}

// isOurs reports whether the kind is a custom resource, which the server
// speaks in JSON only, and which may be missing.
func (r resource) isOurs() bool { return r.group == v1alpha1.GroupVersion() }

// row fills a resource in from its Go types.
func row[O, L any, PO interface {
	*O
	snapshot.Object
}, PL interface {
	*L
	runtime.Object
}](group schema.GroupVersion, name string, namespaced bool) resource {
	return resource{group, name, namespaced,
		func() snapshot.Object { return PO(new(O)) },
		func() runtime.Object { return PL(new(L)) }}
}

// resources is the table of the kinds that can be watched.
func resources() map[snapshot.Kind]resource {
	core, ours := corev1.SchemeGroupVersion, v1alpha1.GroupVersion()
	return map[snapshot.Kind]resource{
		snapshot.Service:          row[corev1.Service, corev1.ServiceList](core, "services", true),
		snapshot.Node:             row[corev1.Node, corev1.NodeList](core, "nodes", false),
		snapshot.Namespace:        row[corev1.Namespace, corev1.NamespaceList](core, "namespaces", false),
		snapshot.Secret:           row[corev1.Secret, corev1.SecretList](core, "secrets", true),
		snapshot.ConfigMap:        row[corev1.ConfigMap, corev1.ConfigMapList](core, "configmaps", true),
		snapshot.EndpointSlice:    row[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, "endpointslices", true),
		snapshot.Ingress:          row[networkingv1.Ingress, networkingv1.IngressList](networkingv1.SchemeGroupVersion, "ingresses", true),
		snapshot.IngressClass:     row[networkingv1.IngressClass, networkingv1.IngressClassList](networkingv1.SchemeGroupVersion, "ingressclasses", false),
		snapshot.IPAddressPool:    row[v1alpha1.IPAddressPool, v1alpha1.IPAddressPoolList](ours, "ipaddresspools", false),
		snapshot.L2Advertisement:  row[v1alpha1.L2Advertisement, v1alpha1.L2AdvertisementList](ours, "l2advertisements", false),
		snapshot.BGPAdvertisement: row[v1alpha1.BGPAdvertisement, v1alpha1.BGPAdvertisementList](ours, "bgpadvertisements", false),
		snapshot.BGPPeer:          row[v1alpha1.BGPPeer, v1alpha1.BGPPeerList](ours, "bgppeers", false),
		snapshot.BFDProfile:       row[v1alpha1.BFDProfile, v1alpha1.BFDProfileList](ours, "bfdprofiles", false),
		snapshot.Community:        row[v1alpha1.Community, v1alpha1.CommunityList](ours, "communities", false),
		snapshot.SpeakerStatus:    row[v1alpha1.SpeakerStatus, v1alpha1.SpeakerStatusList](ours, "speakerstatuses", false),
	}
}

// newScheme knows the types that are read and written, and no others: a scheme
// of everything costs megabytes.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme,
		coordinationv1.AddToScheme, eventsv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s, nil
}
