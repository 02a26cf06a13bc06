package announce

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
)

// The tests here count the bytes that a plan allocates, which do not depend on
// how busy the machine is.

// allocates is how many bytes a plan of n0 takes.
func allocates(c *snapshot.Cluster, view View) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Compile(c, "n0", view, epoch0(), Options{ExternalIPs: true})
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What a Service costs does not grow with the nodes: neither one that nobody has
// claimed nor one that nobody can serve, which may stay so for years.
func TestAServiceCostsTheSameAmongManyNodes(t *testing.T) {
	for name, idle := range map[string]bool{"free": false, "without endpoints": true} {
		t.Run(name, func(t *testing.T) {
			cost := func(nodes, services int) uint64 {
				w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
				for i := range nodes {
					w.addNode(twinNode{name: fmt.Sprintf("n%d", i), alive: true, ready: true, subnet: true}, false)
				}
				for _, f := range w.view.Facts {
					f.Interfaces[0].Prefixes[0] = netip.MustParsePrefix("10.0.0.1/16")
				}
				w.objects = append(w.objects, lanPool("10.0.0.0/16"))
				for i := range services {
					a := twinAddr{addr: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})}
					if idle {
						a.local = map[string]bool{}
					}
					w.addService(fmt.Sprintf("s%d", i), a, i)
				}
				return allocates(snapshot.Of(w.objects...), w.view)
			}
			each := func(nodes int) uint64 { return (cost(nodes, 200) - cost(nodes, 0)) / 200 }
			if few, many := each(50), each(400); many > 3*few {
				t.Errorf("each Service costs %d bytes among 50 nodes, %d among 400", few, many)
			}
		})
	}
}

// An address that many Services list and many have by status costs so much for
// each of them.
func TestCostIsLinearInListersOfOneAddress(t *testing.T) {
	cost := func(n int) uint64 {
		w := &world{view: View{Alive: map[string]struct{}{}}}
		for i := range 2 * n {
			a := twinAddr{addr: addrOf(0), listed: i%2 == 0}
			w.addService(fmt.Sprintf("s%05d", i), a, i)
			svc := w.objects[len(w.objects)-1].(*corev1.Service)
			svc.Annotations = map[string]string{"quayside.io/allow-shared-ip": "k"}
			for p := range 20 {
				svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Port: int32(20*i + p + 1)})
			}
		}
		return allocates(snapshot.Of(append(w.objects, lanPool("10.1.0.0/16"))...), w.view)
	}
	if few, many := cost(200), cost(800); many > 7*few {
		t.Errorf("400 Services cost %d bytes, 1,600 cost %d", few, many)
	}
}

// Whoever may not serve an address is told why, and nobody else.
func TestThereIsAReasonForEachRefusal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		k := newCompiler(snapshot.Of(w.objects...), "n0", w.view, epoch0(), Options{ExternalIPs: true})
		k.read()
		k.readLayer2()
		for _, e := range k.addresses {
			for i := range k.nodes {
				if why, _ := k.whyNot(e, i); (why == "") != (k.serves(e, i) == len(e.users)) {
					t.Fatalf("%s serves %d of %d Services on %s: %q", k.nodes[i].name, k.serves(e, i), len(e.users), e.addr, why)
				}
			}
		}
	})
}
