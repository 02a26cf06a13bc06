package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"quayside.io/test/lab/sandbox"
)

// machine is one node of the cluster: a namespace on the LAN with a
// kube-proxy in it, and pods behind it.
type machine struct {
	core   *core
	number int // 1, 2, …
	name   string
	ns     *netns
	proxy  *Process
	silent atomic.Bool // its kubelet cannot reach the API server

	mu      sync.Mutex
	podHost int // last host number given to a pod
}

func newMachine(c *core, number int) (*machine, error) {
	n := &machine{core: c, number: number, name: fmt.Sprintf("node%d", number), podHost: 1}
	ns, err := newNetns(c.run.netnsName(n.name))
	if err != nil {
		return nil, err
	}
	n.ns = ns
	err = ns.sysctl(
		"net/ipv4/ip_forward=1",
		"net/ipv4/conf/all/rp_filter=0", "net/ipv4/conf/default/rp_filter=0",
		"net/ipv4/conf/all/send_redirects=0", "net/ipv4/conf/default/send_redirects=0",
		"?net/ipv6/conf/all/forwarding=1",
		// A connection that came before kube-proxy had its rules is remembered, untranslated,
		// for two minutes, and with it whatever comes from the same port: so do one in
		// thousands, in a lab whose clients open thousands.
		"?net/netfilter/nf_conntrack_tcp_timeout_syn_sent=5",
	)
	if err != nil {
		return nil, err
	}
	if err := c.lan.plug(ns, n.name, firstNode+number); err != nil {
		return nil, err
	}
	// The gateway need not exist: without the route, a node's own packets to a
	// ClusterIP would be refused before kube-proxy could translate them.
	err = ns.ip(c.opts.each("route add default via "+lanAddr4(gatewayHost), "route add default via "+lanAddr6(gatewayHost))...)
	if err != nil {
		return nil, err
	}
	for other := 1; other <= c.opts.nodes; other++ {
		if other == number {
			continue
		}
		if err := ns.ip(podRoute(other, c.opts.families)...); err != nil {
			return nil, err
		}
	}
	// As network plugins do: pods reach what is outside of the cluster with
	// the node's address, since nobody outside has a route back to them.
	return n, ns.nft(fmt.Sprintf(`
table inet lab {
 chain postrouting {
  type nat hook postrouting priority srcnat + 10;
  oifname eth0 ip saddr %s ip daddr != { %s, %s } masquerade
  oifname eth0 ip6 saddr %s ip6 daddr != { %s, %s } masquerade
 }
}`, podCIDR4, podCIDR4, lanAddr4(apiHost), podCIDR6, podCIDR6, lanAddr6(apiHost)))
}

// podRoute leads to the pods of a node from anywhere on the LAN.
func podRoute(node int, has families) []string {
	return has.each(
		fmt.Sprintf("route replace %s via %s", nodePods4(node), lanAddr4(firstNode+node)),
		fmt.Sprintf("route replace %s via %s", nodePods6(node), lanAddr6(firstNode+node)))
}

// routePods lets the API server answer pods without address translation.
func (a *controlPlane) routePods(nodes []*machine, has families) error {
	for _, n := range nodes {
		if err := a.ns.ip(podRoute(n.number, has)...); err != nil {
			return err
		}
	}
	return nil
}

// register creates the Node object and starts kube-proxy.
func (n *machine) register(ctx context.Context, kubeconfig string) error {
	pods := n.core.opts.each(nodePods4(n.number), nodePods6(n.number))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			corev1.LabelHostname:   n.name,
			corev1.LabelOSStable:   "linux",
			"quayside.io/lab-node": fmt.Sprint(n.number),
		}},
		Spec: corev1.NodeSpec{PodCIDR: pods[0], PodCIDRs: pods},
	}
	if _, err := n.core.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if err := n.heartbeat(ctx); err != nil {
		return err
	}
	text := proxyConfig(n.name, n.core.opts.proxyMode, kubeconfig, n.core.opts)
	if err := os.WriteFile(n.proxyConfigFile(), []byte(text), 0o644); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return n.startProxy()
}

func (n *machine) proxyConfigFile() string {
	return filepath.Join(n.core.run.dir, n.name+"-kube-proxy.yaml")
}

// startProxy starts the node's kube-proxy; one that runs already ends first.
// The rules that it wrote stay in force in the kernel.
func (n *machine) startProxy() (err error) {
	if n.proxy != nil {
		n.proxy.Kill()
	}
	n.proxy, err = n.core.run.start(n.name+"-kube-proxy", &sandbox.Spec{
		NetNS: n.ns.path,
		Env:   frugal(),
		Tmpfs: []string{"/run"}, // its own xtables lock
		Argv:  []string{filepath.Join(n.core.bins.kube, "kube-proxy"), "--config=" + n.proxyConfigFile()},
	})
	return err
}

// heartbeat is what a kubelet writes to the API server every few seconds.
func (n *machine) heartbeat(ctx context.Context) error {
	if err := n.renew(ctx); err != nil {
		return fmt.Errorf("lab: heartbeat of %s: %w", n.name, err)
	}
	// The controller manager writes to a new Node, too.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return n.becomeReady(ctx) })
	if err != nil {
		return fmt.Errorf("lab: status of %s: %w", n.name, err)
	}
	return nil
}

// becomeReady writes that the node is ready, unless it is said already.
func (n *machine) becomeReady(ctx context.Context) error {
	node, err := n.core.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	node.Status = n.status()
	_, err = n.core.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// renew renews the node's Lease.
func (n *machine) renew(ctx context.Context) error {
	now, seconds := metav1.NewMicroTime(time.Now()), int32(40)
	leases := n.core.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	_, err := leases.Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
	}
	return err
}

func (n *machine) status() corev1.NodeStatus {
	now := metav1.Now()
	s := corev1.NodeStatus{
		NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", KubeletVersion: "v1.36.3"},
	}
	for _, address := range n.core.opts.each(lanAddr4(firstNode+n.number), n.IPv6()) {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.name})
	for t, ok := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeNetworkUnavailable: corev1.ConditionFalse,
	} {
		s.Conditions = append(s.Conditions, corev1.NodeCondition{
			Type: t, Status: ok, Reason: "Lab", LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	return s
}

// beat plays the kubelets of all nodes until the lab closes. Errors are of no
// use here: with the API server stopped, every kubelet's heartbeat fails.
func (c *core) beat() {
	ticker := time.NewTicker(min(10*time.Second, c.opts.nodeGrace/4)) // ten seconds is a kubelet's pace, too
	defer ticker.Stop()
	for {
		select {
		case <-c.alive.Done():
			return
		case <-ticker.C:
		}
		for _, n := range c.nodes {
			if n.silent.Load() {
				continue
			}
			ctx, cancel := context.WithTimeout(c.alive, 2*time.Second)
			if n.heartbeat(ctx) == nil {
				n.assertPods(ctx)
			}
			cancel()
		}
	}
}

// Name is the name of the Node object.
func (n *machine) Name() string { return n.name }

// IP is its address on the LAN, of the cluster's first family.
func (n *machine) IP() string { return n.core.opts.onLAN(firstNode + n.number) }

// IPv6 is its other address, in a cluster that has them.
func (n *machine) IPv6() string { return lanAddr6(firstNode + n.number) }

// Addr is IP as a value.
func (n *machine) Addr() netip.Addr { return mustAddr(n.IP()) }

// MAC is that of its interface on the LAN, eth0.
func (n *machine) MAC() string { return lanMAC(firstNode + n.number) }

// KubeProxy is its kube-proxy.
func (n *machine) KubeProxy() *Process { return n.proxy }
