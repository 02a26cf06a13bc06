package announce

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// crowd returns one node and one Service with n addresses in status.
func crowd(n int) (*snapshot.Cluster, View) {
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
	w.addNode(twinNode{name: "n0", alive: true, ready: true, subnet: true}, false)
	w.addService("web", twinAddr{addr: addrOf(0)}, 0)
	svc := w.objects[len(w.objects)-1].(*corev1.Service)
	for i := 1; i < n; i++ {
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: addrOf(i).String()})
	}
	w.view.Facts = nil
	return snapshot.Of(append(w.objects, lanPool("10.1.0.0/16"))...), w.view
}

func addrOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 10<<24|1<<16|uint32(i))))
}

// TestCostIsLinearInAddressesOfOneService counts the bytes that a plan
// allocates, which do not depend on how busy the machine is: four times the
// addresses may not need much more than four times as many.
func TestCostIsLinearInAddressesOfOneService(t *testing.T) {
	cost := func(n int) uint64 {
		c, view := crowd(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan := Compile(c, "n0", view, epoch0(), Options{})
		runtime.ReadMemStats(&after)
		if len(plan.L2.Take) != n {
			t.Fatalf("of %d addresses %d are taken", n, len(plan.L2.Take))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := cost(500), cost(2000); many > 7*few {
		t.Errorf("500 addresses cost %d bytes, 2,000 cost %d", few, many)
	}
}

// BenchmarkAddressesOfOneService is a plan for one Service with n addresses.
func BenchmarkAddressesOfOneService(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		c, view := crowd(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Compile(c, "n0", view, epoch0(), Options{})
			}
		})
	}
}

// twinMayShare asks the allocator's rules.
func twinMayShare(a, b *corev1.Service) bool {
	one, two := loadbalancer.HolderOf(a), loadbalancer.HolderOf(b)
	return one.Clash(&two) == ""
}

func genSharer(t *rapid.T) *corev1.Service {
	svc := &corev1.Service{}
	svc.Annotations = map[string]string{loadbalancer.AnnotationSharingKey: rapid.SampledFrom([]string{"", "k", "k", "k", "l"}).Draw(t, "key")}
	if rapid.IntRange(0, 5).Draw(t, "local") == 0 {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		svc.Spec.Selector = map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(t, "selector")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "ports") {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{
			Protocol: rapid.SampledFrom([]corev1.Protocol{"", "TCP", "UDP"}).Draw(t, "protocol"), Port: rapid.Int32Range(1, 6).Draw(t, "port"),
		})
	}
	return svc
}

// TestConflictIsItsTwin compares who is in the way on an address with asking
// each Service on it in turn; and likewise for those that have it by status,
// whether or not they get along.
func TestConflictIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, h := &holding{}, &holders{}
		var all []*corev1.Service
		for range rapid.IntRange(1, 8).Draw(t, "Services") {
			svc := genSharer(t)
			var want *corev1.Service
			for _, u := range slices.Backward(e.users) {
				if !twinMayShare(u.svc, svc) {
					want = u.svc
				}
			}
			if got := e.conflict(svc); got != want {
				t.Fatalf("%v conflicts with %v, the twin says %v", svc, got, want)
			}
			if want == nil {
				e.attach(user{svc: svc})
			}
			barred := slices.ContainsFunc(all, func(o *corev1.Service) bool { return !twinMayShare(o, svc) })
			if got := h.bar(svc); got != barred {
				t.Fatalf("%v is barred by %v: %v, the twin says %v", svc, all, got, barred)
			}
			if all = append(all, svc); rapid.Bool().Draw(t, "by status") {
				h.add(svc)
			} else {
				all = all[:len(all)-1]
			}
		}
	})
}

// BenchmarkServicesOnOneAddress is a plan for n Services that share an address,
// each with as many ports.
func BenchmarkServicesOnOneAddress(b *testing.B) {
	for _, size := range []struct{ services, ports int }{{1_000, 1}, {10_000, 1}, {10, 1_000}} {
		w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
		w.addNode(twinNode{name: "n0", alive: true, ready: true, subnet: true}, false)
		w.view.Facts = nil
		for i := range size.services {
			w.addService(fmt.Sprintf("s%05d", i), twinAddr{addr: addrOf(0)}, i)
			svc := w.objects[len(w.objects)-1].(*corev1.Service)
			svc.Annotations = map[string]string{loadbalancer.AnnotationSharingKey: "k"}
			for p := range size.ports {
				svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Port: int32(i*size.ports + p + 1)})
			}
		}
		c := snapshot.Of(append(w.objects, lanPool("10.1.0.0/16"))...)
		b.Run(fmt.Sprintf("%dx%d", size.services, size.ports), func(b *testing.B) {
			for b.Loop() {
				if plan := Compile(c, "n0", w.view, epoch0(), Options{}); len(plan.Problems) > 0 {
					b.Fatal(plan.Problems[0])
				}
			}
		})
	}
}
