package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// TestStatusListsWhatTheNetworkFilters puts one that is dead, one whose node was deleted, and
// one that says it of itself or of an owner that was beside those that count.
func TestStatusListsWhatTheNetworkFilters(t *testing.T) {
	says := func(node string, announces []string, unheard ...v1alpha1.UnheardAddress) *v1alpha1.SpeakerStatus {
		s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: node}}
		s.Status.Members = v1alpha1.SpeakerMembers{Alive: 3, Expected: 4, NotAlive: []string{"n4"}}
		for _, a := range announces {
			s.Status.Announcing = append(s.Status.Announcing, v1alpha1.Announcing{Service: "shop/web", Address: a, Protocol: "l2"})
		}
		s.Status.Unheard = unheard
		return s
	}
	of := func(node, address string) v1alpha1.UnheardAddress {
		return v1alpha1.UnheardAddress{Node: node, Address: address, Interface: "eth0"}
	}
	called := func(node string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}} }
	c := snapshot.Of(
		says("n1", []string{"192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"}, of("n1", "192.0.2.3")),
		says("n2", []string{"192.0.2.4"}, of("n1", "192.0.2.1"), of("n1", "192.0.2.2"), of("n3", "192.0.2.4")),
		says("n3", nil, of("n1", "192.0.2.2"), of("n1", "192.0.2.2")),
		says("n4", []string{"192.0.2.9"}, of("n1", "192.0.2.3")),
		says("gone", nil, of("n2", "192.0.2.4")),
		called("n1"), called("n2"), called("n3"), called("n4"),
	)
	want := []Problem{{"Node n1", "AddressUnheard",
		"it announces 192.0.2.1, 192.0.2.2, which n2, n3 cannot hear on the same LAN: something in the network drops what it answers; " +
			"allow the nodes the addresses of the pool there (port security, allowed address pairs, ARP inspection)"}}
	if diff := cmp.Diff(want, Status(Inputs{Cluster: c}).Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
