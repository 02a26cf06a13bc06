package speaker

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// What a node of a fleet is told in its environment.
const (
	nodeEnv  = "QUAYSIDE_TEST_NODE"
	nodesEnv = "QUAYSIDE_TEST_NODES"
	keyEnv   = "QUAYSIDE_TEST_KEY"
	profEnv  = "QUAYSIDE_TEST_PROFILE"
	manyEnv  = "QUAYSIDE_TEST_MANY"
)

const (
	vip6     = "2001:db8:0:1::50"
	vipLocal = "10.0.0.40"
	services = 12 // beside those of vip6 and vipLocal
)

// vip is the address of the i-th Service.
func vip(i int) string { return fmt.Sprintf("10.0.0.%d", 50+i) }

// TestOneNode is not a test but a node of a fleet: a process with a network of
// its own that runs a speaker. It says "ready" on its output. Lines on its
// input are what changes in the cluster: "local NODE…" are the nodes with
// endpoints of the Service of policy Local, "at N ADDRESS" is another InternalIP
// of a node, "drain on" and "drain off" are about this node.
func TestOneNode(t *testing.T) {
	name := os.Getenv(nodeEnv)
	if name == "" {
		t.Skip("runs only as a part of a fleet")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("me", name)
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := strconv.Atoi(os.Getenv(nodesEnv))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(nodes)
	if os.Getenv(manyEnv) == "true" {
		for i := range manyServices {
			all = append(all, service(fmt.Sprintf("many%d", i), manyAddress(i)))
		}
	}
	files.Put(all...) // each Put arranges everything anew
	go func() { _ = files.Run(context.Background()) }()
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			obey(files, name, strings.Fields(in.Text()))
		}
	}()
	s, err := New(Options{Source: files.Source, Writer: files, NodeName: name, MembersKeyFile: os.Getenv(keyEnv), Profile: os.Getenv(profEnv), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for s.Ready() != nil {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println("ready")
	}()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func obey(files *cluster.Files, me string, words []string) {
	switch {
	case words[0] == "local":
		files.Put(endpoints(words[1:]))
	case words[0] == "at":
		number, _ := strconv.Atoi(words[1])
		n := node(number)
		n.Status.Addresses[0].Address = words[2]
		files.Put(n)
	case words[0] == "drain":
		number, _ := strconv.Atoi(me[1:])
		n := node(number)
		if words[1] == "on" {
			n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		}
		files.Put(n)
	}
}

// objects are a cluster of so many nodes, with a Service at each vip, one at
// vip6, and one of policy Local at vipLocal without endpoints yet.
func objects(nodes int) []snapshot.Object {
	var out []snapshot.Object
	for i := range nodes {
		out = append(out, node(i+1))
	}
	out = append(out, &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"},
		Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.40-10.0.0.199", "10.0.8.0/21", "2001:db8:0:1::40-2001:db8:0:1::ff", "2001:db8:0:1::1:0/112"}}})
	out = append(out, service("six", vip6))
	for i := range services {
		out = append(out, service(fmt.Sprintf("s%d", i), vip(i)))
	}
	svc := service("local", vipLocal)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	return append(out, svc)
}

func node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i)}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func service(name, address string) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	return svc
}

func endpoints(nodes []string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "local-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "local"}}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, n := range nodes {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{NodeName: &n, Addresses: []string{"10.1.0.1"}})
	}
	return s
}
