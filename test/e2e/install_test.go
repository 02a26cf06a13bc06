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

// bigPool is the same for the cluster of both families.
const bigPool = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec:
  addresses: [10.77.0.200-10.77.0.239, "fd77::200-fd77::239"]
`

// install puts Quayside, as the chart has it, and a pool into the shared
// cluster that c is a view of; the first test that asks for it waits.
func install(t *testing.T, c *lab.Cluster, pool string) {
	t.Helper()
	if c.Quayside() != nil {
		return
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
}

// bareCluster is cluster without Quayside in it: for tests that write what an
// installed controller would write, too.
func bareCluster(t *testing.T, mode string) *lab.Cluster {
	t.Helper()
	c := cluster(t, mode)
	if c.Quayside() != nil {
		if err := c.Uninstall(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
