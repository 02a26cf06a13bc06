package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where there are many speakers each watches its own Node only, and tells the others of
// it; whatever happens to the Node they read there. All tests of the big lane depend on
// that; this one sees to it that they do.
func TestL2NodesAreTold(t *testing.T) {
	beside(t)
	e := big(t)
	// It may watch all once more, for ten minutes after a test has forged a status.
	reads := func(node string) bool {
		return strings.Contains(e.Quayside().Speaker(e.nodeNamed(node)).Log(), "watches its own Node only")
	}
	const mark = "lab/told"
	for _, n := range e.everyNode() {
		e.mark(n, mark, "yes")
	}
	e.Eventually(settle, func() error {
		for name, s := range e.speakerStatuses() {
			if !reads(name) {
				return fmt.Errorf("the speaker of %s watches all Nodes", name)
			}
			n := e.nodeObject(name)
			told := s.Status.Node
			if told == nil || told.UID != string(n.UID) || !maps.Equal(told.Labels, n.Labels) || len(told.Addresses) != len(n.Status.Addresses) || told.NotReady {
				return fmt.Errorf("of Node %s it is told: %+v", name, told)
			}
		}
		return nil
	})
}

func (e edge) nodeObject(name string) *corev1.Node {
	e.t.Helper()
	n, err := e.Kube().CoreV1().Nodes().Get(e.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return n
}
