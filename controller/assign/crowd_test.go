package assign_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/test/busy"
)

// sharer returns a Service that shares under one key, with the given ports.
func sharer(i int, ports ...int) *corev1.Service {
	s := balancer(fmt.Sprintf("s%06d", i), time.Hour-time.Duration(i)*time.Millisecond)
	s.Annotations = map[string]string{loadbalancer.AnnotationSharingKey: "k"}
	s.Spec.Ports = nil
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: int32(p)})
	}
	return s
}

// BenchmarkSharing is a plan with nothing to change for Services with one
// sharing key: all on one address, and waiting for a full pool because all
// listen on port 80.
func BenchmarkSharing(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		one, full := snapshot.Of(poolOf("a", "10.0.0.1/32")), snapshot.Of(poolOf("a", "10.0.0.1-10.0.3.232"))
		for i := range n {
			one = one.With(sharer(i, 1+i))
			full = full.With(sharer(i, 80, 1000+i)).With(sharer(n+i, 80, 1000+n+i))
		}
		for _, k := range []struct {
			name string
			c    *snapshot.Cluster
		}{{"one address", one}, {"waiting", full}} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				c, plan := settle(b, k.c, nil, noon(), options())
				b.ReportAllocs()
				for b.Loop() {
					plan = assign.Compile(c, plan, nil, noon(), options())
				}
			})
		}
	}
}

// BenchmarkListed is a plan with nothing to change for one Service that lists n
// addresses in spec.externalIPs, and for n that list one address.
func BenchmarkListed(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		many, one := sharer(0, 80), snapshot.Of(poolOf("a", "10.0.0.0/8"))
		many.Spec.Type = corev1.ServiceTypeClusterIP
		for i := range n {
			many.Spec.ExternalIPs = append(many.Spec.ExternalIPs, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
			lister := sharer(i, 1+i)
			lister.Spec.Type, lister.Spec.ExternalIPs = corev1.ServiceTypeClusterIP, []string{"10.0.0.1"}
			one = one.With(lister)
		}
		for _, k := range []struct {
			name string
			c    *snapshot.Cluster
		}{{"many addresses", snapshot.Of(poolOf("a", "10.0.0.0/8"), many)}, {"one address", one}} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				c, plan := settle(b, k.c, nil, noon(), options())
				for b.Loop() {
					plan = assign.Compile(c, plan, nil, noon(), options())
				}
			})
		}
	}
}

// TestLongStatus: who may write the status of a Service can fill it with as many
// addresses as an object has room for. That costs what they are, not their square.
func TestLongStatus(t *testing.T) {
	plan := func(n int) time.Duration {
		s := balancer("web", time.Hour)
		for i := range n {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)})
		}
		c := snapshot.Of(poolOf("a", "10.0.0.0/8"), s)
		began := time.Now()
		_, p := settle(t, c, nil, noon(), options())
		if len(p.Holdings) != n {
			t.Fatalf("%d addresses are held, wanted %d", len(p.Holdings), n)
		}
		return time.Since(began)
	}
	busy.Growth(t, plan, 3_000, 60_000, 100)
}
