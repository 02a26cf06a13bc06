package snapshot_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// A Cluster never changes: With makes the next one, and Diff says what differs
// without a look at what they share.
func Example() {
	service := func(name string, kind corev1.ServiceType) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Type: kind}}
	}
	before := snapshot.Of(service("web", corev1.ServiceTypeClusterIP), service("db", corev1.ServiceTypeClusterIP))
	after := before.With(service("web", corev1.ServiceTypeLoadBalancer))

	for key := range snapshot.Diff(before.Services, after.Services) {
		was, _ := before.Services.Get(key)
		is, _ := after.Services.Get(key)
		fmt.Println(key, "was", was.Spec.Type, "and is", is.Spec.Type)
	}
	// Output:
	// shop/web was ClusterIP and is LoadBalancer
}
