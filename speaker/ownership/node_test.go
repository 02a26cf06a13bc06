package ownership

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

const (
	vip6     = "2001:db8:0:1::50"
	vipLocal = "10.0.0.40"
	services = 12 // beside those of vip6 and vipLocal
)

// vip is the address of the i-th Service.
func vip(i int) string { return fmt.Sprintf("10.0.0.%d", 50+i) }

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

// began is when the tests begin.
func began() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// alone is the machine of node n1 among the objects of a fleet, in the midst of a
// step. It hears of nobody, and has not read its interfaces.
func alone(t *testing.T, more ...snapshot.Object) *Machine {
	t.Helper()
	m := New(Options{Node: "n1"})
	m.now, m.out = began(), &Output{}
	m.world = World{
		Cluster: snapshot.Of(append(objects(2), more...)...), Synced: true,
		Members: &Members{Alive: map[string]struct{}{"n1": {}}, Settled: true},
	}
	return m
}

// told are the Events of the step so far.
func told(m *Machine) (out []string) {
	for _, e := range m.out.Report.Events {
		out = append(out, e.About.String()+" "+e.Reason+": "+e.Message)
	}
	return out
}
