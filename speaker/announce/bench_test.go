package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// BenchmarkCompile is a speaker's whole decision: every address owned, as in
// daily life, and none owned, as after the first start of everything.
func BenchmarkCompile(b *testing.B) {
	for _, size := range []struct{ nodes, services int }{{3, 100}, {100, 1000}, {100, 10000}, {1000, 10000}} {
		w := fleet(size.nodes, size.services)
		c := snapshot.Of(w.objects...)
		b.Run(fmt.Sprintf("free/%dx%d", size.nodes, size.services), func(b *testing.B) {
			for b.Loop() {
				Compile(c, "node-0", w.view, epoch0(), Options{})
			}
		})
		for a, owner := range Compile(c, "node-0", w.view, epoch0(), Options{}).L2.Owners.All() {
			w.view.Claims[a] = Claim{1, owner}
		}
		b.Run(fmt.Sprintf("owned/%dx%d", size.nodes, size.services), func(b *testing.B) {
			for b.Loop() {
				Compile(c, "node-0", w.view, epoch0(), Options{})
			}
		})
	}
}

// fleet is a world of many nodes and Services, on one LAN.
func fleet(nodes, services int) *world {
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}, Claims: map[netip.Addr]Claim{}}}
	for i := range nodes {
		w.addNode(twinNode{name: fmt.Sprintf("node-%d", i), alive: true, ready: true, subnet: true}, false)
	}
	w.objects = append(w.objects, lanPool("10.0.0.0/16"))
	for i, n := range slices.Sorted(maps.Keys(w.view.Facts)) {
		own := netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)})
		w.view.Facts[n].Interfaces[0].Prefixes[0] = netip.PrefixFrom(own, 8)
	}
	for i := range services {
		w.addService(fmt.Sprintf("s%05d", i), twinAddr{addr: netip.AddrFrom4([4]byte{10, 0, byte(10 + i>>8), byte(i)})}, i)
	}
	return w
}

// BenchmarkStep is what a speaker of a fleet of 5,000 decides anew after one event, all
// addresses being owned and told in SpeakerStatuses, as in daily life.
func BenchmarkStep(b *testing.B) {
	w, statuses := ownedFleet(5000, 10000)
	was := snapshot.Of(w.objects...)
	w.view.NodeIndex = (*NodeIndex)(nil).Of(was)
	claimed := maps.Clone(w.view.Claims)
	claimed[w.addrs[7].addr] = Claim{2, "node-9"}
	told := statuses["node-9"].DeepCopy()
	told.Status.Announcing[0].Epoch++
	fewer := maps.Clone(w.view.Alive)
	delete(fewer, "node-7")
	for name, change := range map[string]func(*View) *snapshot.Cluster{
		"nothing":  func(*View) *snapshot.Cluster { return was },
		"a claim":  func(v *View) *snapshot.Cluster { v.Claims = claimed; return was },
		"a status": func(*View) *snapshot.Cluster { return was.With(told) },
		"a death":  func(v *View) *snapshot.Cluster { v.Alive = fewer; return was },
	} {
		b.Run(name, func(b *testing.B) { benchmarkStep(b, w, was, change) })
	}
}

// BenchmarkStepOfEndpoints is the same after one endpoint of a Service of policy Local has moved to
// another node, where all 10,000 are of that policy.
func BenchmarkStepOfEndpoints(b *testing.B) {
	w, _ := ownedFleet(5000, 10000)
	for i, o := range w.objects {
		if svc, is := o.(*corev1.Service); is {
			svc = svc.DeepCopy()
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			w.objects[i] = svc
		}
	}
	on := func(service int, node string) *discoveryv1.EndpointSlice {
		name := fmt.Sprintf("s%05d", service)
		return slice(name+"-1", name, discoveryv1.AddressTypeIPv4, endpoint(node, "ready"))
	}
	for i, a := range w.addrs {
		w.objects = append(w.objects, on(i, w.view.Claims[a.addr].Node))
	}
	was := snapshot.Of(w.objects...)
	w.view.NodeIndex = (*NodeIndex)(nil).Of(was)
	for name, to := range map[string]int{"of others": 9, "to this node": 0} {
		moved := was.With(on(7, fmt.Sprintf("node-%d", to)))
		b.Run(name, func(b *testing.B) {
			benchmarkStep(b, w, was, func(*View) *snapshot.Cluster { return moved })
		})
	}
}

// benchmarkStep makes the plan of node-0 after a change, of the one before.
func benchmarkStep(b *testing.B, w *world, was *snapshot.Cluster, change func(*View) *snapshot.Cluster) {
	b.ReportAllocs()
	view := w.view
	view.Before = Made{Compile(was, "node-0", w.view, epoch0(), Options{}), was}
	is := change(&view)
	for b.Loop() {
		Compile(is, "node-0", view, epoch0(), Options{})
	}
}

// ownedFleet is a fleet in which each address is owned, as the SpeakerStatuses tell.
func ownedFleet(nodes, services int) (*world, map[string]*v1alpha1.SpeakerStatus) {
	w := fleet(nodes, services)
	statuses := map[string]*v1alpha1.SpeakerStatus{}
	for i, n := range w.nodes {
		statuses[n.name] = &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
		for j := i; j < len(w.addrs); j += len(w.nodes) {
			a := w.addrs[j].addr
			w.view.Claims[a] = Claim{1, n.name}
			statuses[n.name].Status.Announcing = append(statuses[n.name].Status.Announcing, v1alpha1.Announcing{
				Service: fmt.Sprintf("default/s%05d", j), Address: a.String(), Protocol: "l2", Epoch: 1, Interfaces: []string{"eth0"}})
		}
		w.objects = append(w.objects, statuses[n.name])
	}
	return w, statuses
}
