package announce

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
)

// TestNodesComeBackFromTheirSummaries with all that a plan reads of them.
func TestNodesComeBackFromTheirSummaries(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", Labels: map[string]string{"zone": "a"}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: "n1"}}
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		for _, unavailable := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}, {Type: corev1.NodeNetworkUnavailable, Status: unavailable}}
			s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
			s.Status.Node = NodeSummary(n)
			if diff := cmp.Diff(n, NodeOf(s)); diff != "" {
				t.Error(diff)
			}
		}
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}
	if told := NodeSummary(n); !told.NotReady || told.NetworkUnavailable {
		t.Errorf("whose kubelet is silent: %+v", told)
	}
	if n.Labels = map[string]string{}; NodeSummary(n).Labels != nil {
		t.Error("no labels are not read back as they were told")
	}
	for _, told := range []*v1alpha1.SpeakerNode{nil, {}} {
		if got := NodeOf(&v1alpha1.SpeakerStatus{Status: v1alpha1.SpeakerStatusStatus{Node: told}}); got != nil {
			t.Errorf("of %v a Node is made: %v", told, got)
		}
	}
}

// TestSummariesAreBounded: one that the API server would refuse is not told.
func TestSummariesAreBounded(t *testing.T) {
	for _, c := range []struct {
		labels, addresses int
		told              bool
	}{{maxSummaryLabels, maxSummaryAddresses, true}, {maxSummaryLabels + 1, 0, false}, {0, maxSummaryAddresses + 1, false}} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Status: corev1.NodeStatus{Addresses: make([]corev1.NodeAddress, c.addresses)}}
		for i := range c.labels {
			n.Labels[fmt.Sprint("l", i)] = ""
		}
		if told := NodeSummary(n) != nil; told != c.told {
			t.Errorf("%d labels, %d addresses: told %v", c.labels, c.addresses, told)
		}
	}
}
