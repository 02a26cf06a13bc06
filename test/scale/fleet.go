package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/members"
)

// fleet is the speakers of all nodes. Each is a real one, but for what touches the
// machine: the LAN and gossip are simulated.
type fleet struct {
	lan    *lan
	gossip *gossip
	log    *slog.Logger
	// window gives the i-th node what it sees the cluster through, its own if its
	// requests are counted, else one that many share.
	window func(ctx context.Context, i int) (window, error)
	nodes  []*node // those that speak
	ending sync.WaitGroup
}

// window is what a speaker sees the cluster through, and writes by.
type window struct {
	source    *cluster.Source
	writer    cluster.Writer
	nodesUpTo int // speaker.Options.NodesUpTo
}

// node is one of the fleet.
type node struct {
	index    int
	port     *port
	registry *prometheus.Registry
	stop     context.CancelFunc
	ended    chan struct{}
}

// newFleet has so many nodes, of which the first few speak.
func newFleet(nodes, speaking int) *fleet {
	f := &fleet{lan: newLAN(), gossip: newGossip(), log: slog.New(slog.DiscardHandler)}
	for i := range speaking {
		f.nodes = append(f.nodes, &node{index: i})
	}
	for i := speaking; i < nodes; i++ {
		f.gossip.join(nodeName(i), nodeAddress(i)).Set(&members.Want{Facts: announce.Facts{Interfaces: []announce.Interface{}}})
	}
	return f
}

// start lets a node's speaker live until ctx ends or the node is killed.
func (f *fleet) start(ctx context.Context, n *node) error {
	ctx, n.stop = context.WithCancel(ctx)
	w, err := f.window(ctx, n.index)
	if err != nil {
		return err
	}
	at := nodeAddress(n.index)
	n.port = &port{of: f.lan, asks: f.gossip.isAlive, at: linkOf(n.index)}
	n.registry, n.ended = prometheus.NewRegistry(), make(chan struct{})
	s, err := speaker.New(speaker.Options{
		Source: w.source, Writer: w.writer, NodesUpTo: w.nodesUpTo, NodeName: nodeName(n.index), Namespace: namespace,
		LAN: n.port, Gossip: f.gossip.join(nodeName(n.index), at), Log: f.log, Registerer: n.registry,
	})
	if err != nil {
		return err
	}
	f.ending.Go(func() {
		defer close(n.ended)
		_ = s.Run(ctx) // it is killed, or all end
	})
	return nil
}

// linkOf is the one interface of a node.
func linkOf(i int) announce.Interface {
	return announce.Interface{
		Name: "eth0", Up: true, MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255),
		Prefixes: []netip.Prefix{netip.PrefixFrom(nodeAddress(i), 8)},
	}
}

// kill ends a node as a power cut does: it says nothing, to nobody.
func (f *fleet) kill(n *node) {
	f.lan.kill(n.port)
	f.gossip.kill(nodeName(n.index))
	<-n.ended
	n.stop()
}

// end ends all speakers, as a power cut does: nobody is left to hand anything over to.
func (f *fleet) end() {
	for _, n := range f.nodes {
		f.gossip.kill(nodeName(n.index))
	}
	f.ending.Wait()
}

// plans are how many a node's speaker has made, and how long they took.
func (n *node) plans() (count uint64, seconds float64) {
	families, err := n.registry.Gather()
	if err != nil {
		return 0, 0
	}
	for _, f := range families {
		if f.GetName() == "quayside_announce_compile_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	return 0, 0
}

// windows opens them through the relay: the first few nodes each have their own, as in
// a real fleet, and all others look through one more.
type windows struct {
	kubeconfig string
	own        int
	nodesUpTo  int
	running    *sync.WaitGroup
	shared     *cluster.API
}

func (w *windows) of(ctx context.Context, i int) (window, error) {
	if i >= w.own {
		return window{w.shared.Source, w.shared, 0}, nil // what one asks for, all see
	}
	api, err := w.open(ctx, "speaker")
	if err != nil {
		return window{}, err
	}
	return window{api.Source, api, w.nodesUpTo}, nil
}

// open is what command does for a speaker.
func (w *windows) open(ctx context.Context, component string) (*cluster.API, error) {
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: cluster.Kubeconfig{File: w.kubeconfig}, Component: component, Kinds: speaker.Kinds(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Referenced: []snapshot.Kind{snapshot.Secret, snapshot.EndpointSlice, snapshot.Node}, OnEveryNode: true,
	})
	if err != nil {
		return nil, err
	}
	w.running.Go(func() { _ = api.Run(ctx) })
	return api, nil
}
