package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"quayside.io/test/lab"
)

// pool is where Services get their addresses; the LAN is 10.0.0.0/8.
const pool = "{apiVersion: quayside.io/v1alpha1, kind: IPAddressPool, metadata: {name: lan}, spec: {addresses: [10.200.0.0/16]}}"

// atOnce is how many objects are made at a time.
const atOnce = 32

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func nodeAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 128, byte(i >> 8), byte(i)})
}

// furnish puts everything into the cluster that is there before the fleet comes.
func furnish(ctx context.Context, c *lab.Cluster, o options) error {
	crds, err := filepath.Glob("charts/quayside/crds/*.yaml")
	if err != nil || len(crds) == 0 {
		return fmt.Errorf("no CRDs below charts/quayside/crds: run this at the root of the source tree (%v)", err)
	}
	for _, name := range crds {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := c.TryApply(string(text)); err != nil {
			return err
		}
	}
	if err := eventually(ctx, 30*time.Second, func() error { return c.TryApply(pool) }); err != nil {
		return err
	}
	kube := c.Kube()
	// The lab's own node has no speaker.
	for _, n := range c.Nodes() {
		if err := kube.CoreV1().Nodes().Delete(ctx, n.Name(), metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := kube.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := each(ctx, o.nodes, func(ctx context.Context, i int) error { return makeNode(ctx, kube, i, o.images) }); err != nil {
		return err
	}
	return each(ctx, o.services, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("s%05d", i)
		all := make([]*discoveryv1.EndpointSlice, o.slices)
		for n := range all {
			all[n] = slice(name, nodeName(i%o.speaking), n+1, o.endpoints)
		}
		return makeService(ctx, kube, name, i < o.local, all...)
	})
}

// each does something n times, some at a time.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

// makeNode makes a Node as a kubelet does, with so many images in its status.
func makeNode(ctx context.Context, kube kubernetes.Interface, i, images int) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
		corev1.LabelHostname: nodeName(i), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		corev1.LabelTopologyZone: fmt.Sprintf("rack-%d", i%20)}}}
	n.Spec.PodCIDR = fmt.Sprintf("10.%d.%d.0/24", 64+i>>8, i&255)
	now := metav1.Now()
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: nodeAddress(i).String()}, {Type: corev1.NodeHostName, Address: nodeName(i)}}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		c := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletIsFine", Message: "kubelet has sufficient of it",
			LastHeartbeatTime: now, LastTransitionTime: now}
		if kind == corev1.NodeReady {
			c.Status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, c)
	}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Allocatable = n.Status.Capacity
	n.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "6.12.0", OSImage: "Debian GNU/Linux 13", ContainerRuntimeVersion: "containerd://2.1.0", KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"}
	for k := range images {
		name := fmt.Sprintf("registry.example/team-%d/application", k)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 27,
			Names: []string{name + "@sha256:" + strings.Repeat("0123456789abcdef", 4), name + ":v1.2.3"}})
	}
	made, err := kube.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// Controllers write Nodes too; what is written here goes before that.
	made.Spec.Taints, made.ResourceVersion = nil, "" // of who is not ready yet
	_, err = kube.CoreV1().Nodes().Update(ctx, made, metav1.UpdateOptions{})
	return err
}

// makeService makes a Service of policy Local or Cluster, with its EndpointSlices.
func makeService(ctx context.Context, kube kubernetes.Interface, name string, local bool, slices ...*discoveryv1.EndpointSlice) error {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
	svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}
	allocate := false
	svc.Spec.AllocateLoadBalancerNodePorts = &allocate // there are fewer of those than Services
	if local {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	if _, err := kube.CoreV1().Services("default").Create(ctx, svc, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, s := range slices {
		if _, err := kube.DiscoveryV1().EndpointSlices("default").Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// slice is the n-th of a Service whose pods, so many in each, run on a node.
func slice(service, node string, n, pods int) *discoveryv1.EndpointSlice {
	ready, port, tcp := true, int32(8080), corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", service, n), Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port, Protocol: &tcp}},
	}
	for i := range pods {
		at := netip.AddrFrom4([4]byte{10, 64, byte(n), byte(9 + i)})
		pod := &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("%s-7d4b9c8f6b-%05d", service, n<<8+i)}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{at.String()}, NodeName: &node, TargetRef: pod,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready}})
	}
	return s
}

// kubeletPause is how often a kubelet writes its Node though nothing has changed.
const kubeletPause = 5 * time.Minute

// kubelets play those of all nodes.
type kubelets struct {
	write   func(ctx context.Context, i int) error
	nodes   int
	pause   time.Duration // of each, between two beats
	written atomic.Int64
}

// run has each kubelet write its Node from time to time until ctx ends. Their Leases
// nobody of ours watches. Each keeps its time, however long the API server takes for
// the others: fewer beats would flatter what watches carry at rest.
func (k *kubelets) run(ctx context.Context) {
	var writing errgroup.Group
	writing.SetLimit(atOnce)
	defer func() { _ = writing.Wait() }() // none of them fails
	next := time.NewTimer(0)
	defer next.Stop()
	began := time.Now()
	for i := range math.MaxInt {
		next.Reset(time.Until(began.Add(k.pause * time.Duration(i) / time.Duration(k.nodes))))
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		writing.Go(func() error {
			if k.write(ctx, i%k.nodes) == nil { // else it is overloaded; the next one comes
				k.written.Add(1)
			}
			return nil
		})
	}
}

func beat(ctx context.Context, kube kubernetes.Interface, i int) error {
	return patchConditions(ctx, kube, i, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, LastHeartbeatTime: metav1.Now()})
}

// setReady says of a node what Kubernetes does of one that is silent, or is back.
func setReady(ctx context.Context, kube kubernetes.Interface, i int, ready corev1.ConditionStatus) error {
	return patchConditions(ctx, kube, i, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.Now()})
}

func patchConditions(ctx context.Context, kube kubernetes.Interface, i int, c corev1.NodeCondition) error {
	condition := map[string]any{"type": c.Type}
	if c.Status != "" {
		condition["status"], condition["lastTransitionTime"] = c.Status, c.LastTransitionTime
	} else {
		condition["lastHeartbeatTime"] = c.LastHeartbeatTime
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return err
	}
	_, err = kube.CoreV1().Nodes().Patch(ctx, nodeName(i), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// eventually asks until there is no error any more.
func eventually(ctx context.Context, within time.Duration, ask func() error) error {
	for until := time.Now().Add(within); ; {
		err := ask()
		if err == nil || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
