package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"quayside.io/test/lab"
)

// shared holds the clusters of this package: small ones by mode of kube-proxy,
// and the big one. A test package has one goroutine that starts tests, so no
// lock is needed.
type clusters map[string]*lab.Cluster

var shared = clusters{}

func TestMain(m *testing.M) {
	code := m.Run()
	for name, c := range shared {
		if err := c.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "close the %s lab: %v\n", name, err)
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
	return share(t, mode, lab.Nodes(3), lab.KubeProxy(mode))
}

// big returns a view for t of the shared cluster of seven nodes, dual-stack,
// with Quayside and a pool of both families in it.
func big(t *testing.T) edge {
	t.Helper()
	c := share(t, "big", lab.Nodes(7), lab.IPv6())
	install(t, c, bigPool)
	return edge{c, t}
}

// three returns a cluster of three nodes for t alone, like the big one.
func three(t *testing.T) edge {
	t.Helper()
	c := lab.New(t, lab.Nodes(3), lab.IPv6())
	install(t, c, bigPool)
	return edge{c, t}
}

// share returns a view for t of the cluster of that name; the first test that
// asks for it waits.
func share(t *testing.T, name string, option ...lab.Option) *lab.Cluster {
	t.Helper()
	lab.Require(t)
	if shared[name] == nil {
		c, err := lab.Start(context.Background(), append(option, lab.Log(func(format string, args ...any) {
			fmt.Printf("lab: "+format+"\n", args...)
		}))...)
		if err != nil {
			t.Fatal(err)
		}
		shared[name] = c
	}
	return shared[name].With(t)
}

// inEachMode runs f on both clusters.
func inEachMode(t *testing.T, f func(t *testing.T, c *lab.Cluster)) {
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) { f(t, cluster(t, mode)) })
	}
}
