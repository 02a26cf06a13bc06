package announce

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// outage is what a node knew when the API server went: n3 has not heard that two Services
// are gone, whose addresses it had.
func outage(heard bool, a string) *snapshot.Cluster {
	svc := func(name, addr string) *corev1.Service {
		s := sharer(name, 80)
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addr}}
		return s
	}
	objects := []snapshot.Object{lanPool("10.0.0.0/24"), &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}},
		readyNode("n1", ""), readyNode("n2", ""), readyNode("n3", ""), svc("a", a)}
	if !heard {
		objects = append(objects, svc("gone", "10.0.0.200"), svc("too", "10.0.0.201"))
	}
	return snapshot.Of(objects...)
}

// While the API server is away, two nodes that know different clusters may each leave an
// address to the other. One of them takes it after a while, and only then.
func TestSomebodyStepsIn(t *testing.T) {
	away := []snapshot.Problem{{Reason: snapshot.Unreachable}}
	split := 0
	for i := 1; i < 100; i++ {
		text := fmt.Sprintf("10.0.0.%d", i)
		a := netip.MustParseAddr(text)
		v := View{Alive: living("n2", "n3"), Claims: map[netip.Addr]Claim{a: {1, "n1"}, netip.MustParseAddr("10.0.0.200"): {1, "n3"}, netip.MustParseAddr("10.0.0.201"): {1, "n3"}}}
		sees := map[string]*snapshot.Cluster{"n2": outage(true, text), "n3": outage(false, text)}
		takes := func(after time.Duration, stale bool) (takers []string, wakes bool) {
			for _, me := range []string{"n2", "n3"} {
				c, own := sees[me], v
				if stale {
					c = c.WithFaults(away)
				}
				p := Compile(c, me, own, epoch0(), Options{})
				own.Orphaned = p.L2.Orphaned
				p = Compile(c, me, own, epoch0().Add(after), Options{})
				if len(p.L2.Take) > 0 && p.L2.Take[0].Address == a {
					takers = append(takers, me)
				}
				wakes = wakes || !p.NextWake.IsZero()
			}
			return takers, wakes
		}
		if takers, _ := takes(time.Hour, false); len(takers) > 0 {
			continue // they agree, or both would
		}
		split++
		if takers, wakes := takes(StepIn-time.Millisecond, true); len(takers) > 0 || !wakes {
			t.Errorf("%s: %v take it at once, wakes %v", text, takers, wakes)
		}
		if takers, _ := takes(StepIn, true); len(takers) == 0 {
			t.Errorf("%s: nobody takes it", text)
		}
		v.Refused = map[netip.Addr]Refusal{a: {MAC: "02:00:00:00:00:01"}}
		if takers, _ := takes(time.Hour, true); len(takers) > 0 {
			t.Errorf("%s: %v take it from a host on the LAN", text, takers)
		}
	}
	if split == 0 {
		t.Error("no address is left to each other: this test proves nothing")
	}
}

// A node that the others come before waits for each of them, in the order in which they follow
// each other when one after the other dies.
func TestWhoIsFurtherBackWaitsLonger(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.9")
	objects := []snapshot.Object{lanPool("10.0.0.0/24"), &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}, sharer("a", 80)}
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("n%d", i))
		objects = append(objects, readyNode(names[i], ""))
	}
	objects[2].(*corev1.Service).Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: a.String()}}
	c := snapshot.Of(objects...).WithFaults([]snapshot.Problem{{Reason: snapshot.Unreachable}})
	waits, of := map[time.Duration]int{}, map[string]time.Duration{}
	for _, me := range names {
		p := Compile(c, me, View{Alive: living(names...)}, epoch0(), Options{})
		of[me] = p.Wake(epoch0())
		waits[of[me]]++
	}
	for alive, n := names, 0; n < 4; n++ {
		next := Compile(c, "", View{Alive: living(alive...)}, epoch0(), Options{}).L2.Owners.Of(a)
		if of[next] != time.Duration(n)*StepIn {
			t.Errorf("%s is number %d to follow, and waits for %v", next, n, of[next])
		}
		alive = slices.DeleteFunc(slices.Clone(alive), func(name string) bool { return name == next })
	}
	if waits[0] != 1 || waits[StepIn] != 1 || waits[2*StepIn] != 1 || waits[3*StepIn] != 1 || waits[4*StepIn] != 4 {
		t.Errorf("waits: %v", waits)
	}
}
