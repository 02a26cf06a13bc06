package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
)

// Cluster is a running lab, seen by one test: what is made through it is
// removed when that test ends.
type Cluster struct {
	*core
	t         testing.TB // nil outside of tests
	ctx       context.Context
	namespace string
}

// core is what all views of a lab share.
type core struct {
	opts options
	bins *binaries
	run  *run
	lan  *lan
	api  *controlPlane

	nodes  []*machine
	client kubernetes.Interface
	any    dynamic.Interface
	mapper meta.ResettableRESTMapper

	alive  context.Context // ends with Close
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu      sync.Mutex
	clients map[string]*Client
	pods    map[*pod]struct{}
	routers map[int]bool // LAN addresses in use
	views   int          // for names of Kubernetes namespaces
	closed  bool

	installed *installation // nil: no Quayside
}

// Start brings a cluster up. The caller closes it. Tests call New or With.
func Start(ctx context.Context, option ...Option) (*Cluster, error) {
	opts := defaults()
	for _, o := range option {
		o(&opts)
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if err := Missing(); err != nil {
		return nil, err
	}
	bins, err := build(ctx, opts.log)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	r, err := newRun(bins.agent)
	if err != nil {
		return nil, err
	}
	c := &core{opts: opts, bins: bins, run: r, clients: map[string]*Client{}, pods: map[*pod]struct{}{}, routers: map[int]bool{}}
	c.alive, c.cancel = context.WithCancel(context.Background())
	view := &Cluster{core: c, ctx: ctx, namespace: "default"}
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, errors.New(c.tails(10)), view.Close())
	}
	opts.log("%d nodes, kube-proxy in %s mode, up in %v", opts.nodes, opts.proxyMode, time.Since(begin).Round(10*time.Millisecond))
	return view, nil
}

func (c *core) up(ctx context.Context) error {
	var err error
	if c.lan, err = newLAN(c.run.netnsName("lan"), theLAN, c.opts.families); err != nil {
		return err
	}
	if c.api, err = newControlPlane(c.run, c.lan, c.bins.kube, c.opts); err != nil {
		return err
	}
	// The API server takes seconds to start: build the network meanwhile.
	started := make(chan error, 1)
	go func() { started <- c.api.start(ctx, c.opts) }()
	for n := 1; n <= c.opts.nodes && err == nil; n++ {
		var node *machine
		node, err = newMachine(c, n)
		c.nodes = append(c.nodes, node)
	}
	if err := errors.Join(err, <-started); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.run.dir, "pki", "kube-proxy.kubeconfig")
	if err := c.api.writeKubeconfig(kubeconfig, proxyToken, c.api.lanURL()); err != nil {
		return err
	}
	for _, node := range c.nodes {
		if err := node.register(ctx, kubeconfig); err != nil {
			return err
		}
	}
	if err := c.api.routePods(c.nodes, c.opts.families); err != nil {
		return err
	}
	c.loops.Go(c.beat)
	return nil
}

func (c *core) connect() error {
	config := c.api.config()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	c.client = client
	if c.any, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	return nil
}

// Close ends everything that the lab began. It may be called twice.
func (v *Cluster) Close() error {
	c := v.core
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.cancel()
	c.loops.Wait()
	// Processes first: a namespace lives as long as someone is in it.
	err := c.run.close()
	for p := range c.pods {
		err = errors.Join(err, p.closeNetns())
	}
	for _, client := range c.clients {
		err = errors.Join(err, client.ns.close())
	}
	for _, n := range c.nodes {
		if n != nil {
			err = errors.Join(err, n.ns.close())
		}
	}
	if c.api != nil {
		err = errors.Join(err, c.api.close())
	}
	if c.lan != nil {
		err = errors.Join(err, c.lan.ns.close())
	}
	return err
}

// Kube is the administrator's typed client.
func (v *Cluster) Kube() kubernetes.Interface { return v.client }

// Dynamic is the administrator's client for any kind.
func (v *Cluster) Dynamic() dynamic.Interface { return v.any }

// Namespace is where this view's pods and manifests go: one per test.
func (v *Cluster) Namespace() string { return v.namespace }

// APIServer is the control plane.
func (v *Cluster) APIServer() *APIServer {
	return &APIServer{controlPlane: v.api, Host: Host{ns: v.api.ns, view: v}}
}

// Kubeconfig writes the administrator's kubeconfig for use on the LAN, in a
// Client's namespace for instance, and returns its path.
func (v *Cluster) Kubeconfig() string {
	v.helper()
	path := filepath.Join(v.run.dir, "kubeconfig")
	v.must(v.api.writeKubeconfig(path, adminToken, v.api.lanURL()))
	return path
}

// KubeconfigOf writes a kubeconfig like the administrator's for whoever has a token.
func (v *Cluster) KubeconfigOf(token, path string) {
	v.helper()
	v.must(v.api.writeKubeconfig(path, token, v.api.lanURL()))
}

// Switch is the name of the namespace with the bridge br0 of the LAN, whose
// ports are named after nodes and clients.
func (v *Cluster) Switch() string { return v.lan.ns.name }

// Logs is the folder with the output of every process.
func (v *Cluster) Logs() string { return filepath.Join(v.run.dir, "logs") }

// Node returns node n; the first is 1.
func (v *Cluster) Node(n int) *Node {
	if n < 1 || n > len(v.nodes) {
		v.fatalf("lab: no node %d: there are 1 to %d", n, len(v.nodes))
	}
	return v.Nodes()[n-1]
}

// Nodes returns all nodes in order.
func (v *Cluster) Nodes() []*Node {
	all := make([]*Node, len(v.nodes))
	for i, m := range v.nodes {
		all[i] = &Node{machine: m, Host: Host{ns: m.ns, view: v}}
	}
	return all
}

// onEnd runs f when the view's test ends, before the lab itself goes.
func (v *Cluster) onEnd(f func()) {
	if v.t != nil {
		v.t.Cleanup(f)
	}
}

// Eventually waits until ask returns nil, and fails with its last error.
func (v *Cluster) Eventually(within time.Duration, ask func() error) {
	v.helper()
	v.must(eventually(within, ask))
}

// fatalf ends the test; without one it panics, since its callers are people
// at a shell whose mistake is shown best where it was made.
func (v *Cluster) fatalf(format string, args ...any) {
	if v.t == nil {
		panic(fmt.Sprintf(format, args...))
	}
	v.t.Helper()
	v.t.Fatalf(format, args...)
}

func (v *Cluster) must(err error) {
	if err != nil {
		v.helper()
		v.fatalf("%v", err)
	}
}

func (v *Cluster) helper() {
	if v.t != nil {
		v.t.Helper()
	}
}
