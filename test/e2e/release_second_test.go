package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// The controller of a second release in a namespace, which charts that are rendered
// without asking the cluster bring about, says whose the Lease is, and ends. The first
// one's stays what it is.
func TestSecondReleaseInTheNamespace(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.Eventually(settle, func() error { // until then nobody can tell whose it is
		lease, err := e.Kube().CoordinationV1().Leases(lab.SystemNamespace).Get(t.Context(), "quayside-controller", metav1.GetOptions{})
		if err == nil && len(lease.OwnerReferences) == 0 {
			err = errors.New("the Lease has no owner yet")
		}
		return err
	})
	command := fmt.Sprintf("timeout 20 %s controller --leader-elect --owner second-controller --namespace %s --kubeconfig %s 2>&1; echo exit code $?",
		e.Quayside().Binary(), lab.SystemNamespace, e.Kubeconfig())
	said := e.Client("laptop").Exec("sh", "-c", command)
	for _, want := range []string{"the Lease quayside-system/quayside-controller belongs to another release of Quayside, that of ClusterRole quayside-controller",
		"install this one, that of ClusterRole second-controller, in a namespace of its own", "exit code 1"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said:\n%s", want, said)
		}
	}
}
