package announce_test

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// Two nodes live, and one of them has claimed the address of a Service: it goes on
// answering, and both know whose it is.
func ExampleCompile() {
	address := netip.MustParseAddr("10.0.0.50")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address.String()}}
	pool := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	pool.Spec.Addresses = []string{"10.0.0.0/24"}
	cluster := snapshot.Of(service, pool,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
	view := announce.View{
		Alive:  map[string]struct{}{"n1": {}, "n2": {}},
		Claims: map[netip.Addr]announce.Claim{address: {Epoch: 7, Node: "n2"}},
	}
	for _, me := range []string{"n1", "n2"} {
		plan := announce.Compile(cluster, me, view, time.Time{}, announce.Options{})
		_, answers := plan.L2.Answers[address]
		fmt.Println(me, "answers:", answers, "owner:", plan.L2.Owners.Of(address))
	}
	// Output:
	// n1 answers: false owner: n2
	// n2 answers: true owner: n2
}
