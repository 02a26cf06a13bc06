package loadbalancer_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
)

// An address of a Service has one home, also where pools overlap.
func Example() {
	pool := func(name string, addresses ...string) *v1alpha1.IPAddressPool {
		return &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: addresses}}
	}
	homes := loadbalancer.HomesOf([]*v1alpha1.IPAddressPool{pool("all", "10.0.0.0/24"), pool("some", "10.0.0.10-10.0.0.20", "10.0.1.0/24")})
	svc := &corev1.Service{}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.50"}, {IP: "::ffff:10.0.1.1"}, {IP: "10.0.0.50"}, {Hostname: "web"}}
	for _, a := range loadbalancer.Addresses(svc) {
		home := homes.Of(a)
		fmt.Println(a, homes.Pools[home].Name, homes.Entry(home, a))
	}
	// Output:
	// 10.0.0.50 all 10.0.0.0/24
	// 10.0.1.1 some 10.0.1.0/24
}
