package e2e

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// byQuayside installs Quayside as the chart has it. A speaker that is killed is
// started again by its kubelet.
func byQuayside(profile string, within time.Duration) mover {
	return mover{
		name: "quayside-" + profile, within: within, stays: true,
		install: func(r *rig) string {
			r.Install(lab.Values{"speaker": lab.Values{"profile": profile}})
			r.Apply(dualPool)
			return r.awaitAddress()
		},
		agrees: func(r *rig, owner string) error { return agree(r.Cluster, r.address, owner) },
		kill:   func(r *rig, n *lab.Node) { r.Quayside().Speaker(n).Crash() },
		revive: func(r *rig, n *lab.Node) { r.Quayside().Speaker(n).AwaitReady() },
	}
}

// awaitAddress waits for the address of Service web.
func (r *rig) awaitAddress() (address string) {
	r.Eventually(settle, func() error {
		svc, err := r.Kube().CoreV1().Services(r.Namespace()).Get(r.b.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("Service web has no address yet: %v", svc.Status.Conditions)
		}
		address = svc.Status.LoadBalancer.Ingress[0].IP
		return nil
	})
	return address
}
