// Package objects makes the cluster in which fleets of speakers are tested, those
// of processes and those that are simulated.
package objects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// What Fleet has.
const (
	VIP6     = "2001:db8:0:1::50"
	VIPLocal = "10.0.0.40"
	Services = 12 // beside those of VIP6 and VIPLocal
)

// VIP is the address of the i-th Service, from 0.
func VIP(i int) string { return fmt.Sprintf("10.0.0.%d", 50+i) }

// Fleet is a cluster of so many nodes, with a Service at each VIP, one at VIP6, and
// one of policy Local at VIPLocal without endpoints yet.
func Fleet(nodes int) []snapshot.Object {
	var out []snapshot.Object
	for i := range nodes {
		out = append(out, Node(i+1))
	}
	out = append(out, &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"},
		Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.40-10.0.0.199", "10.0.8.0/21", "2001:db8:0:1::40-2001:db8:0:1::ff", "2001:db8:0:1::1:0/112"}}})
	out = append(out, Service("six", VIP6))
	for i := range Services {
		out = append(out, Service(fmt.Sprintf("s%d", i), VIP(i)))
	}
	svc := Service("local", VIPLocal)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	return append(out, svc)
}

// Node is n1, n2 and so on, at 10.0.0.1, 10.0.0.2 and so on, which is ready.
func Node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i)}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// DrainedNode is a Node that an autoscaler is about to remove.
func DrainedNode(i int) *corev1.Node {
	n := Node(i)
	n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
	return n
}

// Service is one that has been given an address.
func Service(name, address string) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	return svc
}

// Endpoints of the Service at VIPLocal are one on each of these nodes.
func Endpoints(nodes ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "local-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "local"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}}}
	for i, n := range nodes {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{NodeName: &n, Addresses: []string{fmt.Sprintf("10.1.0.%d", i+1)}})
	}
	return s
}
