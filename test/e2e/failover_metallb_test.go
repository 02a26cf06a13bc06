package e2e

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/lab"
)

// byMetalLB installs MetalLB as its manifest has it: memberlist on port 7946 with its
// default settings. A speaker that is killed is started again by its kubelet, and as a rule
// it is back before the others miss it.
func byMetalLB() mover {
	var m *lab.MetalLB
	restarts, mended := 0, 0
	first := "" // who holds the address while all are alive, since a hash says so
	return mover{
		name: "metallb",
		install: func(r *rig) string {
			m = r.InstallMetalLB()
			r.Apply(`
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: lan, namespace: metallb-system}
spec: {addresses: [10.77.0.200-10.77.0.249]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: lan, namespace: metallb-system}
`)
			address := r.awaitAddress()
			r.Eventually(settle, func() error {
				who := r.Client("laptop").WhoHas(address)
				i := slices.IndexFunc(r.Nodes(), func(n *lab.Node) bool { return slices.Equal(who, []string{n.MAC()}) })
				if i < 0 {
					return fmt.Errorf("%s is answered by %v", address, who)
				}
				first = r.Nodes()[i].Name()
				return nil
			})
			return address
		},
		// Who died is seen by the others once it has the address again.
		agrees: func(_ *rig, owner string) error {
			if owner != first {
				return fmt.Errorf("%s holds the address and will give it back to %s", owner, first)
			}
			return nil
		},
		kill: func(_ *rig, n *lab.Node) {
			restarts = m.Speaker(n).Restarts()
			m.Speaker(n).Crash()
		},
		// Speakers that have called each other dead look for each other once a minute, and
		// until then two of them answer. A change of their Nodes lets them look at once.
		mended: func(r *rig) {
			mended++
			body := fmt.Appendf(nil, `{"metadata":{"labels":{"mended":"%d"}}}`, mended)
			for _, n := range r.Nodes() {
				if _, err := r.Kube().CoreV1().Nodes().Patch(r.b.Context(), n.Name(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
					r.b.Fatal(err)
				}
			}
		},
		revive: func(_ *rig, n *lab.Node) { m.Speaker(n).AwaitReady() },
		restarted: func(r *rig, n *lab.Node) error {
			if m.Speaker(n).Restarts() == restarts {
				return fmt.Errorf("the speaker of %s does not run yet", n.Name())
			}
			if who := r.Client("laptop").WhoHas(r.address); len(who) == 0 {
				return fmt.Errorf("nobody answers for %s yet", r.address)
			}
			return nil
		},
	}
}
