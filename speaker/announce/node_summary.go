package announce

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/api/v1alpha1"
)

// Bounds on a NodeSummary, which are the CRD's. A Node that exceeds them has none, and
// then all speakers watch the Nodes themselves.
const (
	maxSummaryLabels    = 1000
	maxSummaryAddresses = 100
)

// NodeSummary is what a speaker publishes of its Node for the other speakers: all that
// Compile reads of other nodes' Nodes. It is nil if that exceeds the bounds.
func NodeSummary(n *corev1.Node) *v1alpha1.SpeakerNode {
	if len(n.Labels) > maxSummaryLabels || len(n.Status.Addresses) > maxSummaryAddresses {
		return nil
	}
	told := &v1alpha1.SpeakerNode{UID: string(n.UID)}
	if len(n.Labels) > 0 { // else nil, as it is when read back
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

// NodeOf is the Node that another speaker has published. It is nil if it has published
// none, or one without UID, which says that its Node does not exist.
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
