package assign_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// A Service of type LoadBalancer gets an address of the pool. Once the plan is
// carried out there is nothing more to write.
func Example() {
	cluster := snapshot.Of(
		&v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"192.0.2.0/28"}}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}},
			},
		},
	)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	options := assign.Options{DefaultLoadBalancer: true}
	plan := assign.Compile(cluster, nil, nil, now, options)
	for _, h := range plan.Holdings {
		fmt.Println(h.Service, "gets", h.Address, "from pool", h.Pool)
	}
	for _, u := range plan.Updates {
		fmt.Println("write", snapshot.RefOf(u.Object()))
		cluster = cluster.With(u.Object())
	}
	plan = assign.Compile(cluster, plan, nil, now, options)
	fmt.Println("then write", len(plan.Updates), "objects")
	// Output:
	// shop/web gets 192.0.2.0 from pool lan
	// write Service shop/web
	// write IPAddressPool lan
	// then write 0 objects
}
