package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"quayside.io/test/lab"
)

// shared holds the clusters of this package, by mode of kube-proxy. A test
// package has one goroutine that starts tests, so no lock is needed.
type clusters map[string]*lab.Cluster

var shared = clusters{}

func TestMain(m *testing.M) {
	code := m.Run()
	for mode, c := range shared {
		if err := c.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "close the %s lab: %v\n", mode, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// modes are the ways of kube-proxy that every Service must work with.
func modes() []string { return []string{"nftables", "iptables"} }

// cluster returns a view for t of the shared three-node cluster whose
// kube-proxy runs in the given mode.
func cluster(t *testing.T, mode string) *lab.Cluster {
	t.Helper()
	lab.Require(t)
	if shared[mode] == nil {
		c, err := lab.Start(context.Background(), lab.Nodes(3), lab.KubeProxy(mode), lab.Log(func(format string, args ...any) {
			fmt.Printf("lab: "+format+"\n", args...)
		}))
		if err != nil {
			t.Fatal(err)
		}
		shared[mode] = c
	}
	return shared[mode].With(t)
}

// inEachMode runs f on both clusters.
func inEachMode(t *testing.T, f func(t *testing.T, c *lab.Cluster)) {
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) { f(t, cluster(t, mode)) })
	}
}
