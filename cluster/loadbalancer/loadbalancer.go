// Package loadbalancer reads what a Service says to whoever balances its load:
// its class, its annotations, the addresses that it lists, with whom it shares
// one, and which pool an address belongs to; and what a Node says of its own
// addresses, which nobody may have. The controller gives addresses by these words
// and the speakers announce them, so both must read them alike.
//
// It is pure, and any package may import it. Read this file, then sharing.go and
// pools.go.
package loadbalancer

import corev1 "k8s.io/api/core/v1"

// Class is spec.loadBalancerClass of the Services that want us.
const Class = "quayside.io/lb"

// Annotations of Services. Those marked "also metallb" are read under MetalLB's
// prefixes too, so that its users' Services work unchanged.
const (
	// AnnotationPool names the pool that the Service wants. (also metallb)
	AnnotationPool = ourPrefix + "address-pool"
	// AnnotationAddresses lists the addresses that the Service wants. (also metallb)
	AnnotationAddresses = ourPrefix + "loadBalancerIPs"
	// AnnotationSharingKey lets Services with the same value share an address. (also metallb)
	AnnotationSharingKey = ourPrefix + "allow-shared-ip"
	// AnnotationSharingNamespaces lists other namespaces whose Services may
	// share an address with this one, "*" for any. Both sides need it. The first
	// MaxSharingNamespaces count.
	AnnotationSharingNamespaces = ourPrefix + "allow-shared-ip-namespaces"
	// AnnotationGiven is our output: the pools the addresses came from. It says
	// that the addresses in status are ours to take away.
	AnnotationGiven = ourPrefix + "ip-allocated-from-pool"

	ourPrefix = "quayside.io/"
)

// metallbPrefixes are read after ours, newest first.
func metallbPrefixes() [2]string { return [2]string{"metallb.io/", "metallb.universe.tf/"} }

// Annotation returns the value of one of those that are also MetalLB's, and
// whether it is there at all.
func Annotation(svc *corev1.Service, ours string) (string, bool) {
	if len(svc.Annotations) == 0 {
		return "", false
	}
	if v, ok := svc.Annotations[ours]; ok {
		return v, true
	}
	for _, prefix := range metallbPrefixes() {
		if v, ok := svc.Annotations[prefix+ours[len(ourPrefix):]]; ok {
			return v, true
		}
	}
	return "", false
}

// IsLocal reports whether only the nodes with an endpoint may take the traffic.
func IsLocal(svc *corev1.Service) bool {
	return svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// ExternalIPs are the addresses in spec.externalIPs, if kube-proxy routes them.
// For that the Service needs a cluster IP: an API server fills it in, in files it
// may be empty.
func ExternalIPs(svc *corev1.Service) []string {
	if svc.Spec.Type == corev1.ServiceTypeExternalName || svc.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	return svc.Spec.ExternalIPs
}
