package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// epoch0 is the moment at which the tests live.
func epoch0() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// world is a generated cluster with the truth about it beside the objects, so
// that the naive twin need not read Kubernetes objects.
type world struct {
	objects []snapshot.Object
	nodes   []twinNode
	addrs   []twinAddr
	view    View
}

type twinNode struct {
	name                        string
	alive, barred, ready, leave bool
	drained, behind             bool
	subnet                      bool // has an interface that is up in 10.0.0.0/24
}

type twinAddr struct {
	addr   netip.Addr
	listed bool // in spec.externalIPs, not in status

	local  map[string]bool // nil: Cluster
	ending map[string]bool // nodes on which an endpoint terminates and still serves
	only   map[string]bool // nodes an advertisement admits
}

func genWorld(t *rapid.T) *world {
	w := &world{view: View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}, Refused: map[netip.Addr]Refusal{}}}
	chance := func(percent int, label string) bool { return rapid.IntRange(0, 99).Draw(t, label) < percent }
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		n := twinNode{
			name: fmt.Sprintf("n%d", i), alive: chance(80, "alive"), barred: chance(15, "barred"),
			ready: chance(80, "ready"), leave: chance(10, "leaving"), drained: chance(15, "drained"), behind: chance(15, "behind"), subnet: chance(85, "subnet"),
		}
		w.addNode(n, chance(50, "edge"))
	}
	w.objects = append(w.objects, lanPool("10.0.0.0/24"))
	edgeOnly := chance(20, "edge only")
	advert := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	if edgeOnly {
		advert.Spec.NodeSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"edge": "yes"}}}
	}
	w.objects = append(w.objects, advert)
	for i := range rapid.IntRange(1, 12).Draw(t, "services") {
		a := twinAddr{addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i)}), listed: chance(25, "listed")}
		if chance(30, "local") {
			a.local, a.ending = map[string]bool{}, map[string]bool{}
			for _, n := range w.nodes {
				a.local[n.name], a.ending[n.name] = chance(40, "endpoint"), chance(30, "ending")
			}
		}
		if edgeOnly {
			a.only = map[string]bool{}
			for _, o := range w.objects {
				if n, ok := o.(*corev1.Node); ok && n.Labels["edge"] == "yes" {
					a.only[n.Name] = true
				}
			}
		}
		w.addService(fmt.Sprintf("s%02d", i), a, i)
		if chance(60, "claimed") {
			w.view.Claims[a.addr] = Claim{int64(rapid.IntRange(1, 3).Draw(t, "epoch")), rapid.SampledFrom(w.nodes).Draw(t, "claimant").name}
		}
	}
	return w
}

func lanPool(addresses string) *v1alpha1.IPAddressPool {
	return &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{addresses}}}
}

func (w *world) addNode(n twinNode, edge bool) {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{}}}
	if n.barred {
		o.Labels[corev1.LabelNodeExcludeBalancers] = ""
	}
	if edge {
		o.Labels["edge"] = "yes"
	}
	status := corev1.ConditionTrue
	if !n.ready {
		status = corev1.ConditionUnknown
	}
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	own := netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + len(w.nodes))})
	o.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: own.String()}}
	link := Interface{Name: "eth0", Prefixes: []netip.Prefix{netip.PrefixFrom(own, 24)}, Up: n.subnet}
	w.view.Facts[n.name] = Facts{Interfaces: []Interface{link}, Leaving: n.leave, Drained: n.drained, Behind: n.behind}
	if n.alive {
		w.view.Alive[n.name] = struct{}{}
	}
	w.nodes = append(w.nodes, n)
	w.objects = append(w.objects, o)
}

func (w *world) addService(name string, a twinAddr, age int) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch0().Add(time.Duration(age) * time.Second))}}
	svc.Spec.Type, svc.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 80}}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: a.addr.String()}}
	if a.listed {
		svc.Spec.Type, svc.Status.LoadBalancer.Ingress = corev1.ServiceTypeClusterIP, nil
		svc.Spec.ExternalIPs = []string{a.addr.String()}
	}
	if a.local != nil {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: discoveryv1.AddressTypeIPv4, Ports: offered()}
		for n, has := range a.local {
			if has {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &n})
			}
			if a.ending[n] {
				slice.Endpoints = append(slice.Endpoints, endpoint(n, "ending"))
			}
		}
		w.objects = append(w.objects, slice)
	}
	w.objects = append(w.objects, svc)
	w.addrs = append(w.addrs, a)
}

// may is the naive twin of eligibility.
func (w *world) may(n twinNode, a twinAddr) bool {
	return a.admits(n) && (a.local == nil || a.local[n.name] || a.ending[n.name] && w.standsIn(n, a))
}

// admits leaves endpoints aside.
func (a twinAddr) admits(n twinNode) bool {
	return n.alive && !n.barred && n.subnet && (a.only == nil || a.only[n.name])
}

// standsIn reports whether the endpoint that ends on n is better than every ready one: than
// those that nobody announces, and, if the speaker of n stays, than those whose speakers do
// not.
func (w *world) standsIn(n twinNode, a twinAddr) bool {
	for _, o := range w.nodes {
		if a.local[o.name] && a.admits(o) && (n.leave || !o.leave) {
			return false
		}
	}
	return true
}

// fittest is the naive twin of whom a new claim prefers: every preference counts
// only among those that fulfil the preferences before it, if any do.
func (w *world) fittest(in []twinNode) []twinNode {
	for _, preference := range []func(twinNode) bool{
		func(n twinNode) bool { return !n.leave },
		func(n twinNode) bool { return n.ready },
		func(n twinNode) bool { return !n.behind },
		func(n twinNode) bool { return !n.drained },
	} {
		var fulfil []twinNode
		for _, n := range in {
			if preference(n) {
				fulfil = append(fulfil, n)
			}
		}
		if len(fulfil) > 0 {
			in = fulfil
		}
	}
	return in
}

func (w *world) eligible(a twinAddr) (names []string) {
	for _, n := range w.nodes {
		if w.may(n, a) {
			names = append(names, n.name)
		}
	}
	return names
}

func (w *world) compile(me string) *Plan {
	return Compile(snapshot.Of(w.objects...), me, w.view, epoch0(), Options{ExternalIPs: true})
}

// owners are those of the addresses of layer 2 by the plan of me.
func (w *world) owners(me string) map[netip.Addr]string {
	return maps.Collect(w.compile(me).L2.Owners.All())
}

func TestEveryServableAddressIsOwnedByExactlyOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		owners := map[netip.Addr][]string{}
		for _, n := range w.nodes {
			if !n.alive {
				continue
			}
			p := w.compile(n.name)
			for a, answer := range p.L2.Answers {
				if answer.HandOver == "" {
					owners[a] = append(owners[a], n.name)
				}
			}
			for _, take := range p.L2.Take {
				owners[take.Address] = append(owners[take.Address], n.name)
			}
		}
		for _, a := range w.addrs {
			eligible := w.eligible(a)
			if got := owners[a.addr]; len(got) != min(1, len(eligible)) {
				t.Fatalf("%s: eligible %v, owned by %v", a.addr, eligible, got)
			} else if len(got) == 1 && !contains(eligible, got[0]) {
				t.Fatalf("%s: owned by %s, which is not among %v", a.addr, got[0], eligible)
			}
		}
	})
}

// An owner whose node or speaker leaves keeps exactly what nobody fitter can
// take; whatever else is owned stays, and new claims go to the fittest.
func TestWhoLeavesHandsOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		owners := w.owners("n0")
		for _, a := range w.addrs {
			var may []twinNode
			fit, stays := map[string]bool{}, map[string]bool{}
			for _, n := range w.nodes {
				if w.may(n, a) {
					may = append(may, n)
					stays[n.name] = !n.leave && !n.drained
				}
			}
			for _, n := range w.fittest(may) {
				fit[n.name] = true
			}
			holder, owner := w.view.Claims[a.addr].Node, owners[a.addr]
			switch {
			case len(may) == 0:
			case stays[holder] && owner != holder:
				t.Fatalf("%s: %s holds it and stays, but %s owns it", a.addr, holder, owner)
			case !stays[holder] && !fit[owner]:
				t.Fatalf("%s: owned by %q, held by %q; the fittest are %v", a.addr, owner, holder, fit)
			}
		}
	})
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// settle turns what every live node wants to take into claims; keep says which.
func (w *world) settle(keep func(netip.Addr) bool) {
	next := map[netip.Addr]Claim{}
	for a, c := range w.view.Claims {
		next[a] = c
	}
	for _, n := range w.nodes {
		if !n.alive {
			continue
		}
		for _, take := range w.compile(n.name).L2.Take {
			if keep(take.Address) {
				next[take.Address] = Claim{take.Epoch, n.name}
			}
		}
	}
	w.view.Claims = next
}

func TestNothingMovesWithoutACause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		w.settle(func(netip.Addr) bool { return true })
		before := w.owners("n0")
		// A healthy node joins, and another service appears: neither is a cause.
		w.addNode(twinNode{name: "zz", alive: true, ready: true, subnet: true}, true)
		w.addService("late", twinAddr{addr: netip.MustParseAddr("10.0.0.200")}, 99)
		after := w.owners("n0")
		for _, a := range w.addrs[:len(w.addrs)-1] {
			owner := before[a.addr]
			if owner == "" {
				continue
			}
			leaving := false
			for _, n := range w.nodes {
				leaving = leaving || n.name == owner && (n.leave || n.drained)
			}
			if after[a.addr] != owner && !leaving {
				t.Fatalf("%s moved from %s to %s because a node joined", a.addr, owner, after[a.addr])
			}
		}
	})
}

func TestAPlanSurvivesBeingCarriedOutInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		before, crowded := w.owners("n0"), overflows(w)
		w.settle(func(netip.Addr) bool { return rapid.Bool().Draw(t, "arrived") })
		after := w.owners("n0")
		for a, owner := range before {
			if after[a] != owner && !crowded {
				t.Fatalf("%s: %s first, %s after some claims arrived", a, owner, after[a])
			}
		}
	})
}

// overflows reports whether some node must take more than its bound because
// others may not serve: then a plan may be settled by epochs instead.
func overflows(w *world) bool {
	load := map[string]int{}
	for _, owner := range w.owners("n0") {
		load[owner]++
	}
	var usable []twinNode
	for _, n := range w.nodes {
		if n.alive && !n.barred && n.subnet && (w.addrs[0].only == nil || w.addrs[0].only[n.name]) { // all or none have that
			usable = append(usable, n)
		}
	}
	nodes := max(1, len(w.fittest(usable)))
	bound := max(1, (len(w.addrs)*5+nodes*4-1)/(nodes*4))
	for owner, n := range load {
		if owner != "" && n > bound {
			return true
		}
	}
	return false
}

func TestLoadIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
		nodes, services := rapid.IntRange(1, 9).Draw(t, "nodes"), rapid.IntRange(1, 100).Draw(t, "services")
		for i := range nodes {
			w.addNode(twinNode{name: fmt.Sprintf("node-%d", i), alive: true, ready: true, subnet: true}, false)
		}
		w.objects = append(w.objects, lanPool("10.0.0.100-10.0.0.250"))
		for i := range services {
			w.addService(fmt.Sprintf("s%02d", i), twinAddr{addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i)})}, i)
		}
		load := map[string]int{}
		for _, owner := range w.owners("node-0") {
			load[owner]++
		}
		for n, got := range load {
			if float64(got) > 1.25*float64(services)/float64(nodes)+1 {
				t.Fatalf("%s owns %d of %d among %d nodes", n, got, services, nodes)
			}
		}
	})
}
