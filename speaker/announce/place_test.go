package announce

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// The addresses of one family of one Service go to as many nodes as there are,
// however many the other family has. Only the family with several addresses
// counts its siblings.
func TestSiblingsAvoidEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(2, 6).Draw(t, "nodes")
		count := map[bool]int{false: rapid.IntRange(0, nodes).Draw(t, "IPv4"), true: rapid.IntRange(0, nodes).Draw(t, "IPv6")}
		svc := balancer("web", addrAt(100))
		svc.Status.LoadBalancer.Ingress = nil
		for is6, n := range count {
			for i := range n {
				a := netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i)})
				if is6 {
					a = netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", 100+i))
				}
				svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a.String()})
			}
			if several := hasSeveral(svc, is6); several != (count[is6] > 1) {
				t.Fatalf("with %d addresses, IPv6: %v, it has several: %v", count[is6], is6, several)
			}
		}
		pool := lanPool("10.0.0.0/24")
		pool.Spec.Addresses = append(pool.Spec.Addresses, "2001:db8::/64")
		objects, alive := []snapshot.Object{pool, svc}, map[string]struct{}{}
		for i := range nodes {
			name := fmt.Sprintf("n%d", i)
			objects, alive[name] = append(objects, readyNode(name, "")), struct{}{}
		}
		claims := map[netip.Addr]Claim{}
		for _, placed := range []string{"all anew", "some are held already"} {
			owners := map[bool]map[string]bool{false: {}, true: {}}
			for a, owner := range Compile(snapshot.Of(objects...), "n0", View{Alive: alive, Claims: claims}, epoch0(), Options{}).L2.Owners.All() {
				if owners[a.Is6()][owner] = true; rapid.Bool().Draw(t, "is claimed") {
					claims[a] = Claim{1, owner}
				}
			}
			for is6, n := range count {
				if len(owners[is6]) != n {
					t.Fatalf("%s: %d addresses, IPv6: %v, are on %v", placed, n, is6, owners[is6])
				}
			}
		}
	})
}

// What one node had goes to few others where each has many, and to as many as there are
// addresses where each has few; either way nobody gets more than the bound. That is so,
// too, where there are many more nodes that no advertisement selects, or that have no link.
func TestADeathMovesToFew(t *testing.T) {
	for _, row := range []struct{ nodes, each, fewest, most, others int }{
		{60, 30, 4, 2 * groups, 0}, {60, 4, 3, 4, 0}, {5, 40, 4, 4, 0}, {60, 30, 4, 2 * groups, 400},
	} {
		name := func(i int) string { return fmt.Sprintf("n%03d", i) }
		edge := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
		edge.Spec.NodeSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": "edge"}}}
		objects := []snapshot.Object{lanPool("10.0.0.0/16"), edge}
		v := View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}}
		for i := range row.others {
			n := readyNode(fmt.Sprintf("other%03d", i), []string{"", "edge"}[i%2])
			v.Alive[n.Name] = struct{}{}
			if objects = append(objects, n); i%2 == 1 {
				v.Facts[n.Name] = Facts{Interfaces: []Interface{}}
			}
		}
		for i := range row.nodes {
			objects = append(objects, readyNode(name(i), "edge"))
			if i > 0 { // which is dead
				v.Alive[name(i)] = struct{}{}
			}
		}
		for i := range row.nodes * row.each {
			a := netip.AddrFrom4([4]byte{10, 0, byte(1 + i/250), byte(1 + i%250)})
			svc := balancer(fmt.Sprintf("s%d", i), a)
			objects = append(objects, svc)
			v.Claims[a] = Claim{1, name(i % row.nodes)}
		}
		p := Compile(snapshot.Of(objects...), name(1), v, epoch0(), Options{})
		takers, load := map[string]int{}, map[string]int{}
		for a, owner := range p.L2.Owners.All() {
			load[owner]++
			if v.Claims[a].Node == name(0) {
				takers[owner]++
			}
		}
		if n := len(takers); n < row.fewest || n > row.most {
			t.Errorf("%d nodes with %d each, and %d others: %d take over, want %d to %d", row.nodes, row.each, row.others, n, row.fewest, row.most)
		}
		bound := newLoads(0, row.nodes-1, row.nodes*row.each).capacity
		for owner, n := range load {
			if owner == "" || n > bound {
				t.Errorf("%d nodes with %d each: %q has %d, more than %d", row.nodes, row.each, owner, n, bound)
			}
		}
	}
}
