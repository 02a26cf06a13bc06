package assign_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// TestListedMemory: a plan that remembers the last one sees who lists an
// address now, and a Service is never in its own way.
func TestListedMemory(t *testing.T) {
	pool := poolOf("p", "10.0.0.1/32")
	at := func(kind corev1.ServiceType, listed ...string) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "s", CreationTimestamp: metav1.NewTime(noon())}}
		s.Annotations = map[string]string{loadbalancer.AnnotationGiven: "p"}
		s.Spec = corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}, ExternalIPs: listed}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.1"}}
		return s
	}
	// It gives its address up and lists it: in between it is in status still.
	p := assign.Compile(snapshot.Of(pool, at(corev1.ServiceTypeClusterIP, "10.0.0.1")), nil, nil, noon(), options())
	if len(p.Problems) != 0 || len(p.Holdings) != 1 || p.Holdings[0].Pending {
		t.Fatalf("problems %v, holdings %v", p.Problems, p.Holdings)
	}
	idle := at(corev1.ServiceTypeClusterIP)
	idle.Annotations, idle.Status = nil, corev1.ServiceStatus{}
	lists := idle.DeepCopy()
	lists.Spec.ExternalIPs = []string{"10.0.0.1"}
	for i, want := range []int{0, 1, 0, 1} {
		p = assign.Compile(snapshot.Of(pool, []*corev1.Service{idle, lists}[want]), p, nil, noon(), options())
		if len(p.Holdings) != want {
			t.Fatalf("plan %d: %v", i, p.Holdings)
		}
	}
}
