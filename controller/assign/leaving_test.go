package assign_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// having is a Service to which we gave these addresses.
func having(name string, families []corev1.IPFamily, addresses ...string) *corev1.Service {
	s := balancer(name, 2*time.Hour)
	s.Annotations = map[string]string{loadbalancer.AnnotationGiven: "p"}
	s.Spec.IPFamilies = families
	for _, a := range addresses {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
	}
	return s
}

// What a Service loses by a plan is not given to another by the same plan: the
// writes may land in any order.
func TestWhatIsLostIsNotGivenAtOnce(t *testing.T) {
	four, six := corev1.IPv4Protocol, corev1.IPv6Protocol
	waits := func(families ...corev1.IPFamily) *corev1.Service {
		s := balancer("waits", time.Hour)
		s.Spec.IPFamilies = families
		return s
	}
	for name, c := range map[string]*snapshot.Cluster{
		"a family that it does not want any more": snapshot.Of(poolOf("p", "10.0.0.1/32", "2001:db8::1/128"),
			having("has", []corev1.IPFamily{four}, "10.0.0.1", "2001:db8::1"), waits(six)),
		"beside one that its pool has lost, which it is told first": snapshot.Of(poolOf("p", "10.0.0.1/32"),
			having("has", []corev1.IPFamily{four}, "10.0.0.1", "10.0.9.1"), waits(four)),
	} {
		p := assign.Compile(c, nil, nil, noon(), options())
		if slices.ContainsFunc(p.Holdings, func(h assign.Holding) bool { return h.Service.Name == "waits" }) {
			t.Errorf("%s: holdings %v", name, given(p))
		}
	}
	// Once the snapshot shows that it is gone, it is.
	c, p := settle(t, snapshot.Of(poolOf("p", "10.0.0.1/32", "2001:db8::1/128"),
		having("has", []corev1.IPFamily{four}, "10.0.0.1", "2001:db8::1"), waits(six)), nil, noon(), options())
	if got := given(p); !slices.Equal(got, []string{"has 10.0.0.1", "waits 2001:db8::1"}) {
		t.Errorf("in the end %v, of %d Services", got, c.Services.Len())
	}
}
