package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/test/lab"
)

// Drawn clusters are given to MetalLB's own controller and to ours: the same Services have
// addresses, of the same pools and families, and keep those that they have, after each of
// the changes that people make. Which address of a pool it is may differ.
func TestAllocatesAsMetalLB(t *testing.T) {
	beside(t)
	oracle, clusters := metalLBOracle(t, "controller", 200, 5000)
	differ := 0
	for seed := range clusters {
		w := &allocationWorld{dice: throw(seed, 1), t: t}
		w.drawPools()
		for step := range 8 {
			w.known = slices.Clone(w.services)
			what := w.change()
			theirs, ours := w.metalLB(oracle), w.ours()
			if difference := w.compare(theirs, ours); difference != "" {
				t.Errorf("cluster %d, step %d, %s: %s\n%s", seed, step, what, difference, w)
				if differ++; differ > 5 {
					t.FailNow()
				}
				break
			}
			w.services = theirs
			if w.IntN(2) == 0 {
				w.services = ours
			}
		}
	}
}

// metalLBOracle is a part of MetalLB that is asked, and how many clusters it is asked about: more
// in soak.
func metalLBOracle(t *testing.T, part string, usual, soak int) (oracle *lab.Oracle, clusters int) {
	t.Helper()
	lab.Require(t) // not for its own sake: MetalLB takes minutes to build the first time

	oracle, err := lab.NewMetalLBOracle(context.WithoutCancel(t.Context()), part, t.Logf)
	return until(t, oracle, err), drawn(usual, soak)
}

// until closes an oracle at the end of the test, which is after the end of its own context.
func until[O io.Closer](t *testing.T, oracle O, err error) O {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := oracle.Close(); err != nil {
			t.Error(err)
		}
	})
	return oracle
}

// drawn is how many clusters an oracle is asked about.
func drawn(usual, soak int) int {
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		return soak
	}
	return usual
}

// allocationWorld is a cluster whose pools have room for all Services.
type allocationWorld struct {
	dice
	t        *testing.T
	pools    []*v1alpha1.IPAddressPool
	services []*corev1.Service
	known    []*corev1.Service // before the last change
	made     int
}

// dice draw what a world is made of.
type dice struct{ *rand.Rand }

// throw returns the dice of a world and a test. QUAYSIDE_SEED moves on to other worlds: 1000, say,
// to those from the thousandth on.
func throw(world int, test uint64) dice {
	first, _ := strconv.Atoi(os.Getenv("QUAYSIDE_SEED"))
	return dice{rand.New(rand.NewPCG(uint64(first+world), test))}
}

// pick returns one of a list.
func pick[E any](d dice, list ...E) E { return list[d.IntN(len(list))] }

// seldom is true once in n times.
func (d dice) seldom(n int) bool { return d.IntN(n) == 0 }

func (w *allocationWorld) drawPools() {
	for i := range 1 + w.IntN(3) {
		p := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-%d", i)}}
		v4, v6 := fmt.Sprintf("10.0.%d.0-10.0.%d.40", i, i), fmt.Sprintf("fd00:%d::/120", i)
		p.Spec.Addresses = pick(w.dice, []string{v4}, []string{v6}, []string{v4, v6}, []string{v6, v4})
		w.drawSpec(p)
		w.pools = append(w.pools, p)
	}
}

func (w *allocationWorld) drawSpec(p *v1alpha1.IPAddressPool) {
	p.Spec.AvoidBuggyIPs, p.Spec.AutoAssign, p.Spec.AllocateTo = w.seldom(3), nil, nil
	if w.seldom(4) {
		p.Spec.AutoAssign = new(bool)
	}
	if w.seldom(2) {
		p.Spec.AllocateTo = &v1alpha1.ServiceAllocation{Priority: w.IntN(3)}
		if w.seldom(2) {
			p.Spec.AllocateTo.Namespaces = []string{pick(w.dice, "x", "y")}
		}
		if w.seldom(3) {
			p.Spec.AllocateTo.NamespaceSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"team": pick(w.dice, "x", "y")}}}
		}
		if w.seldom(2) {
			p.Spec.AllocateTo.ServiceSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"app": pick(w.dice, "web", "db")}}}
		}
	}
}

// change is one thing that people do.
func (w *allocationWorld) change() string {
	switch {
	case len(w.services) == 0 || len(w.services) < 4 && w.seldom(2):
		w.made++
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: pick(w.dice, "x", "y"), Name: fmt.Sprintf("s%d", w.made),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(w.made), 0))}}
		w.drawFamilies(s)
		w.drawService(s)
		w.services = append(w.services, s)
		return "new " + s.Name
	case w.seldom(6):
		i := w.IntN(len(w.services))
		name := w.services[i].Name
		w.services = slices.Delete(slices.Clone(w.services), i, i+1)
		return "deleted " + name
	case w.seldom(4):
		i := w.IntN(len(w.pools))
		p := w.pools[i].DeepCopy()
		w.drawSpec(p)
		w.pools[i] = p
		return "changed " + p.Name
	}
	i := w.IntN(len(w.services))
	s := w.services[i].DeepCopy()
	w.drawService(s)
	w.services[i] = s
	return "changed " + s.Name
}

// drawFamilies are what never changes of a Service.
func (w *allocationWorld) drawFamilies(s *corev1.Service) {
	policy := pick(w.dice, corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
	s.Spec.IPFamilyPolicy = &policy
	s.Spec.IPFamilies = pick(w.dice, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol})
	if policy == corev1.IPFamilyPolicySingleStack {
		s.Spec.IPFamilies = s.Spec.IPFamilies[:1]
	}
	for _, f := range s.Spec.IPFamilies {
		ip := map[corev1.IPFamily]string{corev1.IPv4Protocol: "10.96.0.", corev1.IPv6Protocol: "fd96::"}[f]
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, fmt.Sprintf("%s%d", ip, w.made))
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
}

func (w *allocationWorld) drawService(s *corev1.Service) {
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	if w.seldom(8) {
		s.Spec.Type = corev1.ServiceTypeClusterIP
	}
	s.Labels = pick(w.dice, nil, map[string]string{"app": "web"}, map[string]string{"app": "db"})
	s.Spec.Selector = pick(w.dice, map[string]string{"app": "web"}, map[string]string{"app": "db"})
	s.Spec.ExternalTrafficPolicy = pick(w.dice, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	s.Spec.Ports = []corev1.ServicePort{{Port: int32(80 + w.IntN(2)), Protocol: pick(w.dice, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
	s.Spec.LoadBalancerIP = ""
	given := s.Annotations[loadbalancer.AnnotationGiven]
	s.Annotations = map[string]string{}
	if given != "" {
		s.Annotations[loadbalancer.AnnotationGiven] = given
	}
	if w.seldom(2) {
		s.Annotations["metallb.io/allow-shared-ip"] = pick(w.dice, "", "k", "k", "j")
		s.Annotations[loadbalancer.AnnotationSharingNamespaces] = "*" // as by MetalLB
	}
	if w.seldom(5) {
		s.Annotations["metallb.io/address-pool"] = pick(w.dice, "pool-0", "pool-1", "pool-9")
	}
	if w.seldom(3) {
		w.drawAddresses(s)
	}
}

// drawAddresses are those that a Service asks for, one of each of its families, and of one pool:
// less than one of each, and such of two pools, only ours gives.
func (w *allocationWorld) drawAddresses(s *corev1.Service) {
	asked := pick(w.dice, "10.0.0.7,fd00:0::7", "fd00:1::8, 10.0.1.8", "10.0.0.0,fd00:0::", "192.0.2.1,2001:db8::1", "nonsense,10.0.0.7")
	if len(s.Spec.IPFamilies) == 2 {
		s.Annotations["metallb.io/loadBalancerIPs"] = asked
		return
	}
	asked, _, _ = strings.Cut(asked, ",")
	if w.seldom(2) {
		s.Spec.LoadBalancerIP = asked
		return
	}
	s.Annotations["metallb.io/loadBalancerIPs"] = asked
	if w.seldom(4) {
		s.Spec.LoadBalancerIP = "10.0.0.9" // and so neither counts
	}
}

func (w *allocationWorld) namespaces() (list []*corev1.Namespace) {
	for _, name := range []string{"x", "y"} {
		list = append(list, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}})
	}
	return list
}

// metalLB is what MetalLB makes of the Services.
func (w *allocationWorld) metalLB(oracle *lab.Oracle) []*corev1.Service {
	w.t.Helper()
	const given = "metallb.io/ip-allocated-from-pool"
	asked := struct {
		Pools      []*v1alpha1.IPAddressPool // whose fields are MetalLB's
		Namespaces []*corev1.Namespace
		Known      []*corev1.Service
		Services   []*corev1.Service
	}{w.pools, w.namespaces(), renamed(w.known, loadbalancer.AnnotationGiven, given), renamed(w.services, loadbalancer.AnnotationGiven, given)}
	var answer struct {
		Error    string
		Services []*corev1.Service
	}
	if err := oracle.Ask(asked, &answer); err != nil {
		w.t.Fatal(err)
	}
	if answer.Error != "" {
		w.t.Fatalf("MetalLB takes no such pools: %s\n%s", answer.Error, w)
	}
	return renamed(answer.Services, given, loadbalancer.AnnotationGiven)
}

// renamed are Services with another name for one of their annotations.
func renamed(services []*corev1.Service, from, to string) (list []*corev1.Service) {
	for _, s := range services {
		s = s.DeepCopy()
		if value, ok := s.Annotations[from]; ok {
			delete(s.Annotations, from)
			s.Annotations[to] = value
		}
		list = append(list, s)
	}
	return list
}

// ours is what our controller makes of them.
func (w *allocationWorld) ours() (list []*corev1.Service) {
	c := snapshot.Of(slices.Concat(objectsOf(w.pools), objectsOf(w.namespaces()), objectsOf(w.services))...)
	var plan *assign.Plan
	for range 10 {
		if plan = assign.Compile(c, plan, nil, time.Unix(1000, 0), assign.Options{DefaultLoadBalancer: true}); len(plan.Updates) == 0 {
			break
		}
		for _, u := range plan.Updates {
			c = c.With(u.Object())
		}
	}
	for _, s := range w.services {
		now, _ := c.Services.Get(snapshot.KeyOf(s))
		list = append(list, now)
	}
	return list
}

func objectsOf[O snapshot.Object](list []O) (objects []snapshot.Object) {
	for _, o := range list {
		objects = append(objects, o)
	}
	return objects
}

// compare says what differs, unless a Service keeps an address that MetalLB takes away, which
// somebody else may be waiting for: in want of what it asks for, or where its pool is for others
// now, or leaves that address out. Nor does it say who leaves where some shared an address and
// may not any more: with ours one who has two loses only that. Nor that ours first serves whoever
// asks for an address by name, where MetalLB has just given it to one who would take any.
func (w *allocationWorld) compare(theirs, ours []*corev1.Service) (difference string) {
	for i, was := range w.services {
		had, has := addressesOf(was), addressesOf(ours[i])
		a, b := w.shape(was, theirs[i]), w.shape(was, ours[i])
		switch {
		case a == b:
		case len(had) > 0 && slices.Equal(had, has) && (a == "" || w.isStranger(was)), w.shared(was):
			return ""
		case a == "" && asksByName(was) && w.givenAway(theirs, has):
		default:
			difference = fmt.Sprintf("%s has, by MetalLB, %s (%v), and by ours %s (%v)", was.Name, a, addressesOf(theirs[i]), b, has)
		}
	}
	return difference
}

// shared reports whether another Service had an address of s, too.
func (w *allocationWorld) shared(s *corev1.Service) bool {
	return slices.ContainsFunc(w.known, func(o *corev1.Service) bool {
		return o.Name != s.Name && slices.ContainsFunc(addressesOf(o), func(a netip.Addr) bool { return slices.Contains(addressesOf(s), a) })
	})
}

// asksByName reports whether a Service asks for addresses, and not only for a pool of them.
func asksByName(s *corev1.Service) bool {
	return s.Spec.LoadBalancerIP != "" || s.Annotations["metallb.io/loadBalancerIPs"] != ""
}

// givenAway reports whether Services have one of some addresses now that they did not have before.
func (w *allocationWorld) givenAway(now []*corev1.Service, addresses []netip.Addr) bool {
	for i, s := range now {
		for _, a := range addressesOf(s) {
			if slices.Contains(addresses, a) && !slices.Contains(addressesOf(w.services[i]), a) {
				return true
			}
		}
	}
	return false
}

// isStranger reports whether a Service has an address of a pool that is not for it any more:
// MetalLB takes that away, and ours leaves it.
func (w *allocationWorld) isStranger(s *corev1.Service) bool {
	for _, a := range addressesOf(s) {
		avoided := a.Is4() && (a.As4()[3] == 0 || a.As4()[3] == 255)
		if p := w.poolOf(a); p != nil && (!w.isFor(p, s) || p.Spec.AvoidBuggyIPs && avoided) {
			return true
		}
	}
	return false
}

func (w *allocationWorld) isFor(p *v1alpha1.IPAddressPool, s *corev1.Service) bool {
	to := p.Spec.AllocateTo
	if to == nil {
		return true
	}
	names := slices.Clone(to.Namespaces)
	for _, selector := range to.NamespaceSelectors {
		names = append(names, selector.MatchLabels["team"])
	}
	app := func(selector metav1.LabelSelector) bool { return selector.MatchLabels["app"] == s.Labels["app"] }
	return (len(names) == 0 || slices.Contains(names, s.Namespace)) && (len(to.ServiceSelectors) == 0 || slices.ContainsFunc(to.ServiceSelectors, app))
}

func (w *allocationWorld) poolOf(a netip.Addr) *v1alpha1.IPAddressPool {
	homes := loadbalancer.HomesOf(w.pools)
	if i := homes.Of(a); i >= 0 {
		return homes.Pools[i]
	}
	return nil
}

// rank is what MetalLB chooses a pool by: of those that are alike it takes any.
func rank(p *v1alpha1.IPAddressPool) string {
	if p.Spec.AllocateTo == nil {
		return "a pool"
	}
	return fmt.Sprintf("a pool of priority %d", p.Spec.AllocateTo.Priority)
}

// shape is what the addresses of a Service have to have in common.
func (w *allocationWorld) shape(was, now *corev1.Service) string {
	var list []string
	before := addressesOf(was)
	for _, a := range addressesOf(now) {
		text := "IPv6"
		if a.Is4() {
			text = "IPv4"
		}
		switch p := w.poolOf(a); {
		case slices.Contains(before, a):
			text += " as before"
		case p != nil:
			text += " of " + rank(p)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// addressesOf are those of a Service in one order, whatever its status has.
func addressesOf(s *corev1.Service) []netip.Addr {
	list := loadbalancer.Addresses(s)
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// String is the cluster for a person.
func (w *allocationWorld) String() string {
	var b strings.Builder
	for _, p := range w.pools {
		spec, _ := json.Marshal(p.Spec)
		fmt.Fprintf(&b, "  %s: %s\n", p.Name, spec)
	}
	for _, s := range w.services {
		fmt.Fprintf(&b, "  %s/%s: %s %s %s %v %v %s/%d labels %v selects %v, asks %v %q, had %v\n", s.Namespace, s.Name, s.Spec.Type, *s.Spec.IPFamilyPolicy, s.Spec.ExternalTrafficPolicy,
			s.Spec.IPFamilies, s.Spec.ClusterIPs, s.Spec.Ports[0].Protocol, s.Spec.Ports[0].Port, s.Labels, s.Spec.Selector, s.Annotations, s.Spec.LoadBalancerIP, addressesOf(s))
	}
	return b.String()
}
