package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"quayside.io/test/lab"
)

// lane is a cluster and whose turn it is: one test at a time has it, until it
// ends, since it makes trouble there, or would mind that of others.
type lane struct {
	turn    sync.Mutex
	cluster *lab.Cluster // nil until a test asks for it
}

// lanes are the clusters of this package, by name, which come up on first use.
type lanes struct {
	mu     sync.Mutex
	byName map[string]*lane
}

var shared = &lanes{byName: map[string]*lane{}}

func TestMain(m *testing.M) {
	// Tests that wait for their lane count as running, and are not many: the
	// lanes, not the processors, say how many get on at the same time.
	if err := flag.Set("test.parallel", "64"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	for name, l := range shared.byName {
		if l.cluster == nil {
			continue
		}
		if err := l.cluster.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "close the %s lab: %v\n", name, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// beside lets t run beside tests of other lanes. It is for those that wait for
// facts, and would with less of a processor, too. Whatever measures time, counts
// failures while something moves, or makes the machine busy does without, and
// runs alone, before all of these.
func beside(t *testing.T) {
	t.Helper()
	t.Parallel()
}

// modes are the ways of kube-proxy that every Service must work with.
func modes() []string { return []string{"nftables", "iptables"} }

// quayside returns the lane of that mode: three nodes with Quayside and a pool in
// it, and with nftables both families.
func quayside(t *testing.T, mode string) edge {
	t.Helper()
	if mode == "iptables" {
		return edge{installed(t, share(t, mode, lab.Nodes(3), lab.KubeProxy(mode)), lanPool), t}
	}
	return edge{installed(t, share(t, mode, lab.Nodes(3), lab.KubeProxy(mode), lab.IPv6()), dualPool), t}
}

// big returns the lane of seven nodes, dual-stack, with Quayside and a pool of
// both families in it.
func big(t *testing.T) edge {
	t.Helper()
	return edge{installed(t, share(t, "big", lab.Nodes(7), lab.IPv6()), dualPool), t}
}

// three returns a lane like the big one, with three nodes: that of tests whose
// routers stand beside the nodes.
func three(t *testing.T) edge {
	t.Helper()
	return edge{installed(t, share(t, "three", lab.Nodes(3), lab.IPv6()), dualPool), t}
}

// bare returns the lane of three nodes without Quayside in it: for tests that
// write what an installed controller would write, too, or install their own.
func bare(t *testing.T) *lab.Cluster {
	t.Helper()
	return share(t, "bare", lab.Nodes(3))
}

// share returns a view for t of the cluster of that name, and of nobody else's
// until t ends; the first test that asks for it brings it up.
func share(t *testing.T, name string, option ...lab.Option) *lab.Cluster {
	t.Helper()
	lab.Require(t)
	shared.mu.Lock()
	l := shared.byName[name]
	if l == nil {
		l = &lane{}
		shared.byName[name] = l
	}
	shared.mu.Unlock()
	l.turn.Lock()
	t.Cleanup(l.turn.Unlock) // the first, so it runs after all that the view leaves to be done
	if l.cluster == nil {
		c, err := lab.Start(context.Background(), append(option, lab.Log(func(format string, args ...any) {
			fmt.Printf("lab "+name+": "+format+"\n", args...)
		}))...)
		if err != nil {
			t.Fatal(err)
		}
		l.cluster = c
	}
	return l.cluster.With(t)
}

// inEachMode runs f on a cluster of each mode, where it judges kube-proxy and
// the lab, not us.
func inEachMode(t *testing.T, f func(t *testing.T, c *lab.Cluster)) {
	t.Run("nftables", func(t *testing.T) { f(t, bare(t)) })
	t.Run("iptables", func(t *testing.T) { f(t, quayside(t, "iptables").Cluster) })
}
