package ownership_test

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/ownership"
)

// Gossip calls the owner of an address dead. Node n1 asks the LAN, and answers for
// the address when nobody else does.
func ExampleMachine() {
	address := netip.MustParseAddr("10.0.0.50")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address.String()}}
	pool := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	pool.Spec.Addresses = []string{"10.0.0.0/24"}
	world := ownership.World{
		Cluster: snapshot.Of(service, pool,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}),
		Synced: true,
		Members: &ownership.Members{
			Alive: map[string]struct{}{"n1": {}}, Settled: true,
			Claims: map[netip.Addr]announce.Claim{address: {Epoch: 7, Node: "n2"}},
		},
		Link: ownership.Link{Interfaces: []announce.Interface{
			{Name: "eth0", MAC: "02:00:00:00:00:01", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, Up: true},
		}},
	}
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

	machine := ownership.New(ownership.Options{Node: "n1"})
	out := machine.Step(now, world)
	for _, q := range out.Ask[0].Questions {
		fmt.Println("who has", q.Address, "on", q.Interfaces)
	}
	silence := &ownership.Finding{Inquiry: out.Ask[0]}
	out = machine.Step(now.Add(out.Ask[0].Timing.Window()), world, silence)
	for a, how := range out.LAN.Addresses {
		fmt.Println("answer for", a, "on", how.Interfaces, "with epoch", out.Members.Claims[a])
	}
	fmt.Println(out.Report.Events[0].Message)
	// Output:
	// who has 10.0.0.50 on [eth0]
	// answer for 10.0.0.50 on [eth0] with epoch 8
	// node n1 announces 10.0.0.50 on eth0 (before: node n2, died)
}
