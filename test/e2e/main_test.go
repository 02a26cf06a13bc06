package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"quayside.io/test/lab"
)

// lane is a cluster and whose turn it is: one test at a time has it, until it
// ends, since it makes trouble there, or would mind that of others.
type lane struct {
	turn sync.Mutex
	up   func() (*lab.Cluster, error) // brings it up once
	late bool                         // it comes up when somebody has it, and not with the others

	cluster *lab.Cluster // nil until then
}

// shared are the lanes of this package by name.
var shared = map[string]*lane{
	// With each mode of kube-proxy a Service must work. Tests to which it is all the
	// same are spread over both.
	"nftables": newLane("nftables", installed{pool: dualPool}, lab.Nodes(3), lab.KubeProxy("nftables"), lab.IPv6()),
	"iptables": newLane("iptables", installed{pool: lanPool}, lab.Nodes(3), lab.KubeProxy("iptables")),
	// Five nodes.
	"big": newLane("big", installed{pool: dualPool}, lab.Nodes(5), lab.IPv6()),
	// Routers stand beside the nodes.
	"three": newLane("three", installed{pool: dualPool}, lab.Nodes(3), lab.IPv6()),
	// Speakers take each other for dead after a tenth of a second.
	"fast": newLane("fast", installed{pool: dualPool, profile: "fast"}, lab.Nodes(3), lab.IPv6()),
	// Nobody has an IPv4 address.
	"six": late(newLane("six", installed{pool: sixPool}, lab.Nodes(2), lab.IPv6Only())),
	// No Quayside: for tests that write what an installed controller would write, too,
	// or install their own.
	"bare": newLane("bare", installed{}, lab.Nodes(3)),
	// Where Quayside has never been: for the test of what it leaves, and then for what
	// the pages tell to type.
	"fresh": newLane("fresh", installed{}, lab.Nodes(2)),
}

// newLane makes a lane whose cluster comes up on first use, with this in it.
func newLane(name string, what installed, option ...lab.Option) *lane {
	l := &lane{}
	option = append(option, lab.Log(func(format string, args ...any) {
		fmt.Printf("lab "+name+": "+format+"\n", args...)
	}))
	l.up = sync.OnceValues(func() (c *lab.Cluster, err error) {
		if c, err = lab.Start(context.Background(), option...); err != nil {
			return nil, err
		}
		l.cluster = c
		if what.pool != "" {
			err = what.into(context.Background(), c)
		}
		return c, err
	})
	return l
}

// late returns the lane as one that comes up when somebody has it.
func late(l *lane) *lane {
	l.late = true
	return l
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // charts are rendered often, and what is measured shares the processors
	// Whose turn it is in a lane, and takeTurn, say how many get on at the same time. Tests
	// that wait for that count as running: were there a place less than there are
	// tests and subtests, those that are waited for would wait for one.
	if err := flag.Set("test.parallel", "4096"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	flag.Parse()
	if flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		upTogether()
	}
	code := m.Run()
	var closing sync.WaitGroup
	errs := make(chan error, len(shared))
	for name, l := range shared {
		if l.cluster == nil {
			continue
		}
		closing.Go(func() {
			if err := l.cluster.Close(); err != nil {
				errs <- fmt.Errorf("close the %s lab: %w", name, err)
			}
		})
	}
	closing.Wait()
	close(errs)
	for err := range errs {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// upTogether brings up all lanes but those that are late, a few side by side, since who brings
// up a cluster waits half of the time. An error is told by each test of the lane.
func upTogether() {
	if lab.Missing() != nil {
		return // and so is this
	}
	var all errgroup.Group
	all.SetLimit(3)
	for _, l := range shared {
		if !l.late {
			all.Go(func() error { _, _ = l.up(); return nil })
		}
	}
	_ = all.Wait()
}

// quayside returns the lane of that mode: three nodes with Quayside and a pool in
// it, and with nftables both families.
func quayside(t *testing.T, mode string) edge {
	t.Helper()
	return edge{share(t, mode), t}
}

// big returns the lane of five nodes, dual-stack, with Quayside and a pool of
// both families in it.
func big(t *testing.T) edge {
	t.Helper()
	return edge{share(t, "big"), t}
}

// three returns a lane like the big one, with three nodes: that of tests whose
// routers stand beside the nodes.
func three(t *testing.T) edge {
	t.Helper()
	return edge{share(t, "three"), t}
}

// fast returns the lane of three nodes, dual-stack, whose speakers have the profile of
// that name.
func fast(t *testing.T) edge { return passing(t, "fast") }

// passing returns a lane that only one test has: then it goes, and leaves its processors
// to the others.
func passing(t *testing.T, name string) edge {
	t.Helper()
	t.Cleanup(func() {
		if c := shared[name].cluster; c != nil {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return edge{share(t, name), t}
}

// bare returns the lane of three nodes without Quayside in it.
func bare(t *testing.T) *lab.Cluster {
	t.Helper()
	return share(t, "bare")
}

// share returns a view for t of the cluster of that lane, and of nobody else's
// until t ends.
func share(t *testing.T, name string) *lab.Cluster {
	t.Helper()
	lab.Require(t)
	l := shared[name]
	l.turn.Lock()
	t.Cleanup(l.turn.Unlock) // the first, so it runs after all that the view leaves to be done
	takeTurn(t)              // only now: who waits for a lane keeps nobody
	c, err := l.up()
	if err != nil {
		t.Fatal(err)
	}
	return c.With(t)
}

// lend lets other tests have the lane while wait lasts. It is for who has it and waits
// for long for something that they do not touch.
func lend(name string, wait func()) {
	l := shared[name]
	l.turn.Unlock()
	defer l.turn.Lock()
	wait()
}

// inEachMode runs f on a cluster of each mode, where it judges kube-proxy and
// the lab, not us.
func inEachMode(t *testing.T, f func(t *testing.T, c *lab.Cluster)) {
	onEach(t, map[string]func(*testing.T) *lab.Cluster{
		"nftables": bare,
		"iptables": func(t *testing.T) *lab.Cluster { return quayside(t, "iptables").Cluster },
	}, f)
}

// onEach runs f as a subtest on each lane, by the name of the subtest, side by side:
// what happens on one LAN is no business of the other, and most of it is waiting.
func onEach[C any](t *testing.T, lanes map[string]func(*testing.T) C, f func(t *testing.T, c C)) {
	for name, lane := range lanes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, lane(t))
		})
	}
}
