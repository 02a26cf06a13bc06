package networkpolicy_test

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/networkpolicy"
)

// A policy that lets in pods of its own namespace keeps everybody else out.
func Example() {
	alone := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alone"}}
	alone.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}}
	web := &networkpolicy.Pod{Namespace: "shop", Name: "web"}
	port := networkpolicy.Port{Number: 8080, Protocol: "TCP"}

	for _, policy := range networkpolicy.Isolating([]*networkingv1.NetworkPolicy{alone}, web, networkingv1.PolicyTypeIngress) {
		for _, from := range []string{"shop", "quayside-proxy"} {
			fmt.Println(from, networkpolicy.LetsIn(policy, &networkpolicy.Pod{Namespace: from}, web, port))
		}
	}
	// Output:
	// shop true
	// quayside-proxy false
}
