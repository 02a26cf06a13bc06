package announce

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/api/v1alpha1"
)

// Bounds on what a speaker tells of its Node, which are the CRD's. Of a Node with more
// nothing is told, and all watch it.
const (
	maxToldLabels    = 1000
	maxToldAddresses = 100
)

// Told is what a speaker tells the others of its Node: all that Compile reads of the Nodes
// of others. It is nil where that is too much.
func Told(n *corev1.Node) *v1alpha1.SpeakerNode {
	if len(n.Labels) > maxToldLabels || len(n.Status.Addresses) > maxToldAddresses {
		return nil
	}
	told := &v1alpha1.SpeakerNode{UID: string(n.UID)}
	if len(n.Labels) > 0 { // as it is read back
		told.Labels = n.Labels
	}
	for _, a := range n.Status.Addresses {
		told.Addresses = append(told.Addresses, v1alpha1.SpeakerNodeAddress{Type: string(a.Type), Address: a.Address})
	}
	for _, c := range n.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			told.NotReady = c.Status != corev1.ConditionTrue
		case corev1.NodeNetworkUnavailable:
			told.NetworkUnavailable = c.Status == corev1.ConditionTrue
		}
	}
	return told
}

// NodeOf is the Node of another speaker as that tells it. It is nil if it does not, or
// says by a Node without UID that there is none.
func NodeOf(s *v1alpha1.SpeakerStatus) *corev1.Node {
	told := s.Status.Node
	if told == nil || told.UID == "" {
		return nil
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Name, UID: types.UID(told.UID), Labels: told.Labels}}
	for _, a := range told.Addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(a.Type), Address: a.Address})
	}
	status := func(is bool) corev1.ConditionStatus {
		if is {
			return corev1.ConditionTrue
		}
		return corev1.ConditionFalse
	}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status(!told.NotReady)},
		{Type: corev1.NodeNetworkUnavailable, Status: status(told.NetworkUnavailable)},
	}
	return n
}
