package e2e

import (
	"context"

	"quayside.io/test/lab"
)

// lanPool is what tests get their addresses from.
const lanPool = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec:
  addresses: [10.77.0.200-10.77.0.239]
`

// dualPool is the same for a cluster of both families.
const dualPool = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec:
  addresses: [10.77.0.200-10.77.0.239, "fd77::200-fd77::239"]
`

// install puts Quayside, as the chart has it, and a pool into a cluster.
func install(ctx context.Context, c *lab.Cluster, pool string) error {
	if err := c.TryInstall(ctx, lab.Values{
		"controller": lab.Values{"extraArgs": []any{"--lease-duration=5s"}},
		"proxy":      lab.Values{"gracePeriodSeconds": 10},
		// The big lane reads the Nodes of others in SpeakerStatuses, the others watch all.
		"speaker":      lab.Values{"watchNodesUpTo": 5},
		"ingressClass": lab.Values{"default": true},
	}); err != nil {
		return err
	}
	return c.TryApply(pool)
}
