package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/lab/sandbox"
)

// pod is a Pod object with what a kubelet would have made of it: a namespace
// behind its node's and one process in it.
type pod struct {
	core    *core
	machine *machine

	namespace, name string
	uid             types.UID
	host            bool   // hostNetwork: the node's own namespace
	number          int    // last byte of its address, without host
	ns              *netns // the node's, with host
	dir             string // token and volumes

	command func(context.Context) (*sandbox.Spec, error) // made again for each start
	volumes []volume
	probe   *probe        // nil: readiness is what SetReady says
	admin   string        // URL up to the path, where there is one
	grace   time.Duration // terminationGracePeriodSeconds
	lingers time.Duration // of that, before the process is asked to end: a preStop hook

	mu       sync.Mutex
	process  *Process
	ready    bool
	reported bool // what the API server knows of ready, if told
	told     bool
	held     bool // stopped on purpose: the kubelet does not start it again
	fallen   bool // ended, and the kubelet has seen it
	restarts int32
	gone     bool
	loop     context.CancelFunc
	loopDone chan struct{}
}

// create makes the object and the network, and leaves the rest to begin.
func (c *core) create(ctx context.Context, m *machine, object *corev1.Pod) (*pod, error) {
	object.Spec.NodeName = m.name
	p := &pod{core: c, machine: m, namespace: object.Namespace, name: object.Name, host: object.Spec.HostNetwork}
	err := eventually(20*time.Second, func() error {
		created, err := c.client.CoreV1().Pods(p.namespace).Create(ctx, object, metav1.CreateOptions{})
		if err == nil {
			p.uid = created.UID
			return nil
		}
		// Its ServiceAccount may be a moment away; nothing else is forgiven.
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "serviceaccount") {
			return &permanent{err}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lab: pod %s: %w", p.name, err)
	}
	p.dir = fmt.Sprintf("%s/pods/%s", c.run.dir, p.uid)
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	c.mu.Lock()
	c.pods[p] = struct{}{}
	c.mu.Unlock()
	return p, p.plug()
}

// plug makes the pod's namespace and its routed wire to the node.
func (p *pod) plug() error {
	m := p.machine
	if p.host {
		p.ns = m.ns
		return nil
	}
	m.mu.Lock()
	m.podHost++
	p.number = m.podHost
	m.mu.Unlock()
	if p.number > 254 {
		return fmt.Errorf("lab: %s has given out all of its pod addresses", m.name)
	}
	ns, err := newNetns(p.core.run.netnsName(fmt.Sprintf("%s-pod%d", m.name, p.number)))
	if err != nil {
		return err
	}
	p.ns = ns
	has := p.core.opts.families
	veth, addr4, addr6 := fmt.Sprintf("pod%d", p.number), podAddr4(m.number, p.number), podAddr6(m.number, p.number)
	node := []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", veth, ns.name),
		fmt.Sprintf("link set %s up", veth),
	}
	inside := []string{"link set eth0 up"}
	if has.v4 {
		node = append(node,
			fmt.Sprintf("addr add %s/32 dev %s", podGateway4(m.number), veth),
			fmt.Sprintf("route add %s/32 dev %s", addr4, veth))
		inside = append(inside,
			fmt.Sprintf("addr add %s/32 dev eth0", addr4),
			fmt.Sprintf("route add %s dev eth0 scope link", podGateway4(m.number)),
			fmt.Sprintf("route add default via %s", podGateway4(m.number)))
	}
	if has.v6 {
		node = append(node,
			fmt.Sprintf("addr add %s/64 dev %s nodad", podGateway6, veth),
			fmt.Sprintf("route add %s/128 dev %s", addr6, veth))
		inside = append(inside,
			fmt.Sprintf("addr add %s/128 dev eth0 nodad", addr6),
			fmt.Sprintf("route add default via %s dev eth0", podGateway6))
	}
	if err := m.ns.ip(node...); err != nil {
		return err
	}
	return ns.ip(inside...)
}

// addr is the pod's address of the cluster's first family, its node's with hostNetwork.
func (p *pod) addr() string { return p.addrs()[0].IP }

func (p *pod) addrs() (ips []corev1.PodIP) {
	four, six := podAddr4(p.machine.number, p.number), podAddr6(p.machine.number, p.number)
	if p.host {
		four, six = lanAddr4(firstNode+p.machine.number), p.machine.IPv6()
	}
	for _, ip := range p.core.opts.each(four, six) {
		ips = append(ips, corev1.PodIP{IP: ip})
	}
	return ips
}

// launch starts the pod's process.
func (p *pod) launch(ctx context.Context) error {
	spec, err := p.command(ctx)
	if err != nil {
		return err
	}
	process, err := p.core.run.start(p.namespace+"-"+p.name, spec)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.process = process
	p.mu.Unlock()
	return nil
}

func (p *pod) current() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// report tells the API server whether the pod is ready, if that is news. A
// pod on a silent node can tell nothing.
func (p *pod) report(ctx context.Context, ready bool) error {
	p.mu.Lock()
	p.ready = ready
	news := !p.gone && (!p.told || p.reported != ready)
	restarts := p.restarts
	p.mu.Unlock()
	if !news || p.machine.silent.Load() {
		return nil
	}
	if err := p.writeStatus(ctx, ready, restarts); err != nil {
		return err
	}
	p.mu.Lock()
	p.reported, p.told = ready, true
	p.mu.Unlock()
	return nil
}

func (p *pod) writeStatus(ctx context.Context, ready bool, restarts int32) error {
	now := metav1.Now()
	var conditions []corev1.PodCondition
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status := corev1.ConditionTrue
		if !ready && (t == corev1.ContainersReady || t == corev1.PodReady) {
			status = corev1.ConditionFalse
		}
		conditions = append(conditions, corev1.PodCondition{Type: t, Status: status, LastTransitionTime: now})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": corev1.PodRunning, "conditions": conditions, "startTime": now,
		"hostIP": p.machine.IP(), "podIP": p.addr(), "podIPs": p.addrs(),
		"containerStatuses": []corev1.ContainerStatus{{
			Name: "main", Ready: ready, RestartCount: restarts, Image: "lab", ImageID: "lab",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}})
	if err != nil {
		return err
	}
	_, err = p.core.client.CoreV1().Pods(p.namespace).Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("lab: status of pod %s: %w", p.name, err)
	}
	return nil
}

// assertPods says again how the node's pods are, where the node lifecycle
// controller has written otherwise. Errors wait for the next beat.
func (n *machine) assertPods(ctx context.Context) {
	list, err := n.core.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + n.name, ResourceVersion: "0"})
	if err != nil {
		return
	}
	server := map[types.UID]bool{}
	for _, object := range list.Items {
		for _, c := range object.Status.Conditions {
			if c.Type == corev1.PodReady {
				server[object.UID] = c.Status == corev1.ConditionTrue
			}
		}
	}
	for _, p := range n.core.podsOf(n) {
		p.mu.Lock()
		ready := p.ready
		if known, ok := server[p.uid]; ok && p.told && known != p.reported {
			p.told = false
		}
		p.mu.Unlock()
		_ = p.report(ctx, ready)
	}
}

func (c *core) podsOf(m *machine) []*pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*pod
	for p := range c.pods {
		if p.machine == m {
			all = append(all, p)
		}
	}
	return all
}

// remove takes the pod away: politely, as a kubelet does for a deleted pod,
// or at once, as the end of a test does.
func (p *pod) remove(ctx context.Context, grace time.Duration) error {
	return p.terminate(ctx, grace, p.delete)
}

// terminate asks the API server for the pod's end, unless there is no grace,
// and does what its kubelet then does.
func (p *pod) terminate(ctx context.Context, grace time.Duration, ask func(context.Context, metav1.DeleteOptions) error) error {
	p.mu.Lock()
	if p.gone {
		p.mu.Unlock()
		return nil
	}
	p.held = true
	p.mu.Unlock()
	if grace > 0 {
		// Now the EndpointSlice says "terminating", and the process hears of it.
		seconds := int64(max(1, grace.Seconds()))
		if err := ask(ctx, metav1.DeleteOptions{GracePeriodSeconds: &seconds}); err != nil {
			p.release()
			return fmt.Errorf("lab: end pod %s: %w", p.name, err)
		}
		time.Sleep(min(p.lingers, grace))
	}
	if process := p.current(); process != nil {
		process.Stop(grace)
	}
	p.stopLoop()
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	zero := int64(0)
	last := p.delete(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.uid}})
	if apierrors.IsNotFound(last) || apierrors.IsConflict(last) {
		last = nil
	}
	p.core.mu.Lock()
	delete(p.core.pods, p)
	p.core.mu.Unlock()
	return errors.Join(last, p.unplug(), os.RemoveAll(p.dir))
}

func (p *pod) stopLoop() {
	if p.loop != nil {
		p.loop()
		<-p.loopDone
	}
}

// unplug takes away what plug made. The wire is cut first, and by name: a
// namespace lives on while a socket is open in it.
func (p *pod) unplug() error {
	if p.host || p.ns == nil {
		return nil
	}
	return errors.Join(p.machine.ns.ip(fmt.Sprintf("link del pod%d", p.number)), p.ns.close())
}

// closeNetns is for the end of the lab, when the nodes go as well.
func (p *pod) closeNetns() error {
	if p.host || p.ns == nil {
		return nil
	}
	return p.ns.close()
}
