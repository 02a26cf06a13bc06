package lab

import (
	"context"
	"slices"
)

// Node is a machine of the cluster, seen by one test. Whatever trouble a test
// makes is in force when the method returns, and healed when the test ends.
type Node struct {
	*machine
	Host
}

// APIServer is the control plane, seen by one test.
type APIServer struct {
	*controlPlane
	Host
}

// Stop kills kube-apiserver, as a crash or a power cut does: connections are
// reset and new ones refused. The rest of the cluster goes on. It is started
// again when the test ends.
func (a *APIServer) Stop() {
	a.view.helper()
	a.view.visit()
	a.server.Kill()
	a.view.onEnd(func() { a.view.must(a.Start(context.Background())) })
}

// Start starts kube-apiserver again and returns when it is ready. The
// controller manager is started again, as in a cluster where it has lost its
// lease by then, and so are the kube-proxies: left alone they take up to a
// minute to come back, since client-go waits longer after each attempt, and
// until then a node has no rules for a new Service.
func (a *APIServer) Start(ctx context.Context) error {
	if !a.server.Ended() {
		return nil
	}
	if err := a.startServer(ctx); err != nil {
		return err
	}
	a.manager.Kill()
	if err := a.startManager(a.view.opts); err != nil {
		return err
	}
	for _, n := range a.view.Nodes() {
		if err := n.startProxy(); err != nil {
			return err
		}
	}
	return nil
}

// Member is something with a port on the LAN's switch: a Node, a Client, a
// Router, the APIServer.
type Member interface{ port() string }

func (n *machine) port() string      { return n.name }
func (c *Client) port() string       { return c.name }
func (a *controlPlane) port() string { return "api" }

// Fail makes the node silent: the switch drops every packet from and to it,
// ARP too, and no link goes down. Its kubelet falls silent as well.
func (n *Node) Fail() {
	n.view.helper()
	n.view.visit()
	n.silent.Store(true)
	n.view.must(n.core.lan.change(func(f *faults) { f.setSilent(n.name, true) }))
	n.view.onEnd(n.Heal)
}

// CarrierDown pulls the node's cable: its interface loses its link.
func (n *Node) CarrierDown() {
	n.view.helper()
	n.view.visit()
	n.silent.Store(true)
	n.view.must(n.core.lan.carrier(n.name, false))
	n.view.onEnd(n.Heal)
}

// Heal ends Fail, CarrierDown and Loss. The kubelet reports at once.
func (n *Node) Heal() {
	n.view.helper()
	n.view.must(n.core.lan.change(func(f *faults) {
		f.setSilent(n.name, false)
		f.setLoss(n.name, 0)
	}))
	n.view.must(n.core.lan.carrier(n.name, true))
	if n.silent.Swap(false) && n.heartbeat(n.core.alive) == nil {
		n.assertPods(n.core.alive)
	}
}

// Loss makes this percentage of the node's packets vanish, each way.
func (n *Node) Loss(percent int) {
	n.view.helper()
	n.view.must(n.core.lan.change(func(f *faults) { f.setLoss(n.name, percent) }))
	n.view.onEnd(n.Heal)
}

// Partition keeps the members of a and b from hearing each other, until the
// returned function is called.
func (v *Cluster) Partition(a, b []Member) (heal func()) {
	v.helper()
	return v.split(&split{from: ports(a), to: ports(b)})
}

// OneWay drops what from sends to to; the way back stays open.
func (v *Cluster) OneWay(from, to []Member) (heal func()) {
	v.helper()
	return v.split(&split{from: ports(from), to: ports(to), oneWay: true})
}

func (v *Cluster) split(s *split) (heal func()) {
	v.helper()
	v.visit()
	v.must(v.lan.change(func(f *faults) { f.splits = append(f.splits, s) }))
	heal = func() {
		v.must(v.lan.change(func(f *faults) {
			f.splits = slices.DeleteFunc(f.splits, func(other *split) bool { return other == s })
		}))
	}
	v.onEnd(heal)
	return heal
}

// Cut drops every packet on the LAN that matches an nft expression, such as
// "udp dport 7946" for gossip alone, until the returned function is called.
func (v *Cluster) Cut(match string) (heal func()) {
	v.helper()
	cut := &match
	v.visit()
	v.must(v.lan.change(func(f *faults) { f.cuts = append(f.cuts, cut) }))
	heal = func() {
		v.must(v.lan.change(func(f *faults) {
			f.cuts = slices.DeleteFunc(f.cuts, func(other *string) bool { return other == cut })
		}))
	}
	v.onEnd(heal)
	return heal
}

// Members makes a list of what takes a port: lab.Members(c.Node(1), laptop).
func Members(members ...Member) []Member { return members }

func ports(members []Member) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.port()
	}
	return names
}
