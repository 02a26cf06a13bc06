package bench

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

const (
	// leaderVariable makes this test be the leader's process.
	leaderVariable = "QUAYSIDE_TEST_LEADER"

	leaderServices, leaderSlices, leaderEndpoints = 10_000, 5, 10 // slices of each Service, endpoints of each slice
	leaderLimit                                   = 500 << 20     // resident
)

// TestAllocOfALeader is what a leader holds of 10,000 Services, 50,000 EndpointSlices with
// half a million endpoints, and an Ingress for each Service: the objects and what its
// three compilers make of them, in a process of their own.
func TestAllocOfALeader(t *testing.T) {
	if os.Getenv(leaderVariable) != "" {
		beLeader(t)
		return
	}
	if racing {
		t.Skip("the race detector takes memory of its own")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc here")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAllocOfALeader$", "-test.v")
	cmd.Env = append(os.Environ(), leaderVariable+"=yes")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	measured := false
	for line := range strings.Lines(string(out)) {
		if _, figures, is := strings.Cut(line, "leader: "); is {
			t.Log(strings.TrimSpace(figures))
			measured = true
		}
	}
	if !measured {
		t.Fatalf("it says nothing:\n%s", out)
	}
}

func beLeader(t *testing.T) {
	c, now := leaderWorld(t), time.Now()
	say := func(when string) (resident uint64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		resident = status(t, "VmRSS")
		t.Logf("leader: %s: %d MB in use, %d MB resident, %d MB at most", when, m.HeapAlloc>>20, resident>>20, status(t, "VmHWM")>>20)
		return resident
	}
	say("the objects")
	plan := assign.Compile(c, nil, nil, now, assign.Options{DefaultLoadBalancer: true})
	for len(plan.Updates) > 0 {
		for _, u := range plan.Updates {
			c = c.With(u.Object())
		}
		plan = assign.Compile(c, plan, nil, now, assign.Options{DefaultLoadBalancer: true})
	}
	say("with all addresses given")
	announced := announce.Compile(c, "", announce.ViewOf(c), now, announce.Options{})
	table := route.Compile(c, nil, route.Options{Now: now})
	resident := say("with announcements and routes")
	if len(plan.Holdings) != leaderServices || len(table.Backends) != leaderServices || announced.L2.Owners.Len() != leaderServices {
		t.Errorf("%d addresses are given, %d announced, %d backends", len(plan.Holdings), announced.L2.Owners.Len(), len(table.Backends))
	}
	if resident > leaderLimit {
		t.Errorf("%d MB are resident, more than %d", resident>>20, leaderLimit>>20)
	}
	runtime.KeepAlive([]any{c, plan, announced, table})
}

// status is a line of what the kernel says of this process, in bytes.
func status(t *testing.T, field string) uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kilobytes uint64
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, field+":"); is {
			if _, err := fmt.Sscan(value, &kilobytes); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kilobytes << 10
}

// leaderWorld is the cluster, with a hundred nodes.
func leaderWorld(t testing.TB) *snapshot.Cluster {
	pool := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.0/16"}}}
	c := snapshot.Of(pool)
	for i := range 100 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("192.0.2.%d", i+1)}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		c = c.With(n)
	}
	for i := range leaderServices {
		namespace, name, class, prefix := fmt.Sprintf("team-%d", i/20), fmt.Sprintf("service-%d", i), "quayside", networkingv1.PathTypePrefix
		svc := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "6b1f1c1e-8d7c-4f0e-9d54-3f3b0c1a2b3c", ResourceVersion: "123456789", Labels: map[string]string{"app.kubernetes.io/name": name, "team": "edge"}},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				Selector: map[string]string{"app.kubernetes.io/name": name}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}}},
		}
		in := &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "7b1f1c1e-8d7c-4f0e-9d54-3f3b0c1a2b3c", ResourceVersion: "123456789", Annotations: map[string]string{route.OwnPrefix + "proxy-body-size": "8m"}},
			Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: name + ".example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}},
		}
		batch := []snapshot.Object{objects.Received(t, svc), objects.Received(t, in)}
		for n := range leaderSlices {
			batch = append(batch, objects.Received(t, leaderSlice(svc, n)))
		}
		c = c.With(batch...)
	}
	return c
}

func leaderSlice(svc *corev1.Service, number int) *discoveryv1.EndpointSlice {
	ready, port, name, protocol := true, int32(8080), "http", corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: svc.Namespace, Name: fmt.Sprintf("%s-%d", svc.Name, number), UID: "0c9f1c1e-8d7c-4f0e-9d54-3f3b0c1a2b3c", ResourceVersion: "123456789",
			Labels: map[string]string{discoveryv1.LabelServiceName: svc.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for e := range leaderEndpoints {
		node := fmt.Sprintf("node-%d", (e*97+number)%100)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.244.%d.%d", e, number)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready}, NodeName: &node,
		})
	}
	return s
}
