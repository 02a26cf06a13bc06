package lab

import (
	"fmt"
	"time"
)

// Option changes what Start brings up.
type Option func(*options)

type options struct {
	nodes     int
	proxyMode string
	families
	nodeGrace     time.Duration
	apiserverArgs []string
	binary        string
	log           func(format string, args ...any)
}

func defaults() options {
	return options{nodes: 3, families: families{v4: true}, proxyMode: "nftables", nodeGrace: 40 * time.Second, log: func(string, ...any) {}}
}

func (o *options) validate() error {
	if o.nodes < 1 || o.nodes > 80 {
		return fmt.Errorf("lab: %d nodes: the LAN has room for 1 to 80", o.nodes)
	}
	if o.proxyMode != "nftables" && o.proxyMode != "iptables" {
		return fmt.Errorf("lab: kube-proxy mode %q: must be nftables or iptables", o.proxyMode)
	}
	return nil
}

// Nodes is how many nodes the cluster has. The default is 3.
func Nodes(n int) Option { return func(o *options) { o.nodes = n } }

// KubeProxy is the mode of every kube-proxy: nftables, the default, or iptables.
func KubeProxy(mode string) Option { return func(o *options) { o.proxyMode = mode } }

// IPv6 makes the cluster dual-stack, IPv4 first.
func IPv6() Option { return func(o *options) { o.v6 = true } }

// IPv6Only makes cluster and LAN single-stack, without any IPv4 but loopback's.
func IPv6Only() Option { return func(o *options) { o.families = families{v6: true} } }

// NodeGrace is how long the node lifecycle controller waits for a silent node
// before it calls it NotReady. The default is Kubernetes' own, 40 s.
func NodeGrace(d time.Duration) Option { return func(o *options) { o.nodeGrace = d } }

// APIServerArgs adds flags to kube-apiserver.
func APIServerArgs(args ...string) Option {
	return func(o *options) { o.apiserverArgs = append(o.apiserverArgs, args...) }
}

// Binary is what Install runs. The default is to build it from this tree.
func Binary(path string) Option { return func(o *options) { o.binary = path } }

// Log gets a line for each thing that the lab does while it comes up.
func Log(printf func(format string, args ...any)) Option {
	return func(o *options) { o.log = printf }
}
