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

// sixPool is the same for one without IPv4.
const sixPool = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec:
  addresses: ["fd77::200-fd77::239"]
`

// installed is what a lane has of Quayside: the chart's defaults, but for what makes
// tests shorter. Without a pool there is none.
type installed struct {
	pool    string
	profile string // of the speakers; empty: the default
}

// into puts it into a cluster.
func (i installed) into(ctx context.Context, c *lab.Cluster) error {
	// The big lane reads the Nodes of others in SpeakerStatuses, the others watch all.
	speaker := lab.Values{"watchNodesUpTo": 4}
	if i.profile != "" {
		speaker["profile"] = i.profile
	}
	if err := c.TryInstall(ctx, lab.Values{
		"controller":   lab.Values{"extraArgs": []any{"--lease-duration=5s"}},
		"proxy":        lab.Values{"gracePeriodSeconds": 10},
		"speaker":      speaker,
		"ingressClass": lab.Values{"default": true},
	}); err != nil {
		return err
	}
	return c.TryApply(i.pool)
}
