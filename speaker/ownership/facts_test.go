package ownership

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// Pods that are routed from node to node make every node a gateway of every
// other; what a node says of itself must not grow with the cluster for that.
func TestNodesAreNotToldAsGateways(t *testing.T) {
	router := netip.MustParseAddr("10.0.255.254")
	var nodes []snapshot.Object
	gateways := []netip.Addr{router}
	for i := range 200 {
		n := objects.Node(i + 1)
		nodes = append(nodes, n)
		gateways = append(gateways, netip.MustParseAddr(n.Status.Addresses[0].Address))
	}
	nodes[7].(*corev1.Node).Status.Addresses = append(nodes[7].(*corev1.Node).Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: "n8"})
	links := []announce.Interface{{Name: "eth0", Up: true, Gateways: gateways}, {Name: "eth1"}}
	got := withoutNodes((*announce.NodeIndex)(nil).Of(snapshot.Of(nodes...)), links)
	if diff := cmp.Diff([]announce.Interface{{Name: "eth0", Up: true, Gateways: []netip.Addr{router}}, {Name: "eth1"}}, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if len(links[0].Gateways) != 201 {
		t.Error("what layer 2 has read was written to")
	}
}
