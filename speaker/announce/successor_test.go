package announce

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
)

// genCrowd is a world of some nodes, of which few are unfit, and all addresses have a
// holder.
func genCrowd(t *rapid.T) *world {
	w := &world{view: View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}}}
	chance := func(percent int, label string) bool { return rapid.IntRange(0, 99).Draw(t, label) < percent }
	nodes := rapid.IntRange(3, 9).Draw(t, "nodes")
	for i := range nodes {
		w.addNode(twinNode{
			name: fmt.Sprintf("n%d", i), alive: true, ready: chance(85, "ready"), subnet: chance(90, "subnet"), behind: chance(10, "behind"),
		}, chance(40, "edge"))
	}
	advert := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	if chance(30, "preferences") {
		advert.Spec.PreferredNodeSelectors = []v1alpha1.PreferredNode{{Weight: 5, Preference: metav1.LabelSelector{MatchLabels: map[string]string{"edge": "yes"}}}}
	}
	w.objects = append(w.objects, lanPool("10.0.0.0/24"), advert)
	for i := range rapid.IntRange(1, 4).Draw(t, "services") {
		a := twinAddr{addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i)})}
		if chance(30, "local") {
			a.local = map[string]bool{}
			for _, n := range w.nodes {
				a.local[n.name] = chance(70, "endpoint")
			}
		}
		w.addService(fmt.Sprintf("s%02d", i), a, i)
	}
	w.settle(func(netip.Addr) bool { return true })
	return w
}

// Whoever follows a holder that dies, and had one address, has watched it: so says a plan
// of the world without that holder. Load is guessed, and so one in some thousand does not:
// it learns of the death by gossip.
func TestHeirsWatch(t *testing.T) {
	followed, surprised := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := genCrowd(t)
		before, watch := w.owners("n0"), map[string][]string{}
		for _, n := range w.nodes {
			watch[n.name] = w.compile(n.name).L2.Watch
			if slices.Contains(watch[n.name], n.name) {
				t.Fatalf("%s watches itself", n.name)
			}
		}
		for a, holder := range before {
			if c := w.view.Claims[a]; c.Node != holder || count(before)[holder] != 1 {
				continue
			}
			by := 0
			for _, n := range w.nodes {
				if slices.Contains(watch[n.name], holder) {
					by++
				}
			}
			if by > successors {
				t.Fatalf("%s is watched by %d", holder, by)
			}
			next := w.without(holder).compile("n0").L2.Owners.Of(a)
			if next == "" || len(watch[next]) == maxWatch {
				continue
			}
			followed++
			if !slices.Contains(watch[next], holder) {
				surprised++
				t.Logf("%s follows %s as the holder of %s, and watches %v", next, holder, a, watch[next])
			}
		}
	})
	if followed < 20 || surprised > 1+followed/200 {
		t.Errorf("of %d that have followed %d watched another", followed, surprised)
	}
}

func count(owners map[netip.Addr]string) map[string]int {
	out := map[string]int{}
	for _, n := range owners {
		out[n]++
	}
	return out
}

// without is w after the death of a node.
func (w *world) without(dead string) *world {
	after := *w
	after.nodes = slices.Clone(w.nodes)
	after.view.Alive = map[string]struct{}{}
	for i := range after.nodes {
		if n := &after.nodes[i]; n.name == dead {
			n.alive = false
		} else if n.alive {
			after.view.Alive[n.name] = struct{}{}
		}
	}
	return &after
}

// A holder is watched by two, however many nodes there are; and nobody watches more than
// it can.
func TestFewWatch(t *testing.T) {
	for _, nodes := range []int{3, 7, 50} {
		w := &world{view: View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}}}
		for i := range nodes {
			w.addNode(twinNode{name: fmt.Sprintf("n%d", i), alive: true, ready: true, subnet: true}, false)
		}
		vip := netip.MustParseAddr("10.0.0.200")
		w.objects = append(w.objects, lanPool("10.0.0.0/24"))
		w.addService("web", twinAddr{addr: vip}, 0)
		w.view.Claims[vip] = Claim{1, "n1"}
		var by []string
		for _, n := range w.nodes {
			if watch := w.compile(n.name).L2.Watch; len(watch) > 0 {
				by = append(by, n.name)
			}
		}
		if len(by) != successors {
			t.Errorf("%d nodes: the holder is watched by %v", nodes, by)
		}
		if nodes < 50 {
			continue
		}
		for i := range 200 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
			w.addService(fmt.Sprintf("s%d", i), twinAddr{addr: a}, i+1)
			w.view.Claims[a] = Claim{1, fmt.Sprintf("n%d", i%nodes)}
		}
		for _, n := range w.nodes {
			if watch := w.compile(n.name).L2.Watch; len(watch) > maxWatch {
				t.Errorf("%s watches %v", n.name, watch)
			}
		}
	}
}
