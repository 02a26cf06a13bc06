package e2e

import (
	"testing"

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

// installed puts Quayside, as the chart has it, and a pool into the shared
// cluster that c is a view of, unless a test before t has.
func installed(t *testing.T, c *lab.Cluster, pool string) *lab.Cluster {
	t.Helper()
	if c.Quayside() != nil {
		return c
	}
	if err := c.TryInstall(t.Context(), lab.Values{
		"controller":   lab.Values{"extraArgs": []any{"--lease-duration=5s"}},
		"proxy":        lab.Values{"gracePeriodSeconds": 10},
		"ingressClass": lab.Values{"default": true},
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.TryApply(pool); err != nil {
		t.Fatal(err)
	}
	return c
}
