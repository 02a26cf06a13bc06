package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/lab"
)

// Drawn clusters are given to MetalLB's own speaker and to ours: the same nodes may have an
// address on layer 2, on the same interfaces, the most preferred of them has it, and each node
// tells the same routers the same routes.
func TestAnnouncesAsMetalLB(t *testing.T) {
	beside(t)
	oracle, clusters := metalLBOracle(t, "speaker", 1000, 20_000)
	differ := 0
	for seed := range clusters {
		w := drawAnnouncements(throw(seed, 3))
		theirs, err := w.metalLB(oracle)
		if err != nil {
			t.Fatal(err)
		}
		if theirs.Error != "" {
			t.Fatalf("MetalLB refuses cluster %d: %s\n%s", seed, theirs.Error, w)
		}
		for _, difference := range w.compare(theirs.Nodes) {
			t.Errorf("cluster %d: %s\n%s", seed, difference, w)
			if differ++; differ > 5 {
				t.FailNow()
			}
		}
	}
}

// announcementWorld is a cluster whose addresses have been given.
type announcementWorld struct {
	dice
	prefs       map[int]uint32 // by how many bits are left out of a route
	nodes       []*corev1.Node
	pools       []*v1alpha1.IPAddressPool
	l2          []*v1alpha1.L2Advertisement
	bgp         []*v1alpha1.BGPAdvertisement
	peers       []*v1alpha1.BGPPeer
	communities []*v1alpha1.Community
	services    []*corev1.Service
	slices      [][]*discoveryv1.EndpointSlice // by Service
}

// announcementAnswer is what the oracle says of a node; see test/metallb/oracle/speaker.
type announcementAnswer struct {
	Layer2 map[string]struct {
		Interfaces []string
		Weight     int64
	}
	BGP map[string][]struct {
		Prefix      netip.Prefix
		LocalPref   uint32
		Prepend     int
		Communities []string
	}
}

func drawAnnouncements(d dice) *announcementWorld {
	w := &announcementWorld{dice: d, prefs: map[int]uint32{0: pick[uint32](d, 0, 101), 4: 202, 8: 0}}
	for i := range 3 {
		w.drawNode(i)
	}
	for i := range 2 {
		p := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-%d", i), Labels: map[string]string{"zone": pick(d, "a", "b")}}}
		p.Spec.Addresses = []string{fmt.Sprintf("10.0.%d.0/24", i), fmt.Sprintf("fd00:%d::/120", i)}
		w.pools = append(w.pools, p)
	}
	for i := range d.IntN(3) {
		w.drawL2(i)
	}
	for i := range max(d.IntN(4), 1-len(w.l2)) { // without any object all pools are announced by ours
		w.drawBGP(i)
	}
	for i := range 1 + d.IntN(2) {
		w.drawPeer(i)
	}
	c := &v1alpha1.Community{ObjectMeta: metav1.ObjectMeta{Name: "names"}}
	c.Spec.Communities = []v1alpha1.CommunityAlias{{Name: "blackhole", Value: "65535:666"}, {Name: "far", Value: "large:1:2:3"}}
	w.communities = append(w.communities, c)
	for i := range 1 + d.IntN(4) {
		w.drawService(i)
	}
	return w
}

func (w *announcementWorld) drawNode(i int) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"rack": pick(w.dice, "a", "b")}}}
	if w.seldom(8) {
		n.Labels[corev1.LabelNodeExcludeBalancers] = pick(w.dice, "", "true", "false")
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if w.seldom(8) {
		n.Status.Conditions[0].Status = pick(w.dice, corev1.ConditionFalse, corev1.ConditionUnknown)
	}
	if w.seldom(3) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: pick(w.dice, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)})
	}
	n.Spec.Unschedulable = w.seldom(8)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.16.0.%d", i+1)}}
	w.nodes = append(w.nodes, n)
}

// selectors are none, or some that look at one label.
func (w *announcementWorld) selectors(label string, values ...string) (list []metav1.LabelSelector) {
	for range w.IntN(3) {
		value := pick(w.dice, values...)
		selector := pick(w.dice,
			metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}}},
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}}},
		)
		if !slices.ContainsFunc(list, func(o metav1.LabelSelector) bool { return o.String() == selector.String() }) {
			list = append(list, selector)
		}
	}
	return list
}

// seldomSelectors are mostly none.
func (w *announcementWorld) seldomSelectors(label string, values ...string) []metav1.LabelSelector {
	if w.seldom(3) {
		return w.selectors(label, values...)
	}
	return nil
}

func (w *announcementWorld) drawL2(i int) {
	o := &v1alpha1.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("l2-%d", i)}}
	o.Spec.IPAddressPools = pick(w.dice, nil, nil, []string{"pool-0"}, []string{"pool-1", "pool-9"})
	o.Spec.IPAddressPoolSelectors = w.seldomSelectors("zone", "a", "b")
	o.Spec.NodeSelectors = w.seldomSelectors("rack", "a", "b")
	o.Spec.ServiceSelectors = w.seldomSelectors("app", "web", "db")
	o.Spec.Interfaces = pick(w.dice, nil, nil, []string{"eth0"}, []string{"eth1", "eth0"})
	for _, preference := range w.seldomSelectors("rack", "a", "b") {
		o.Spec.PreferredNodeSelectors = append(o.Spec.PreferredNodeSelectors, v1alpha1.PreferredNode{Weight: int32(1 + w.IntN(3)), Preference: preference})
	}
	w.l2 = append(w.l2, o)
}

func (w *announcementWorld) drawBGP(i int) {
	o := &v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bgp-%d", i)}}
	o.Spec.IPAddressPools = pick(w.dice, nil, nil, []string{"pool-0"}, []string{"pool-1", "pool-9"})
	o.Spec.IPAddressPoolSelectors = w.seldomSelectors("zone", "a", "b")
	o.Spec.NodeSelectors = w.seldomSelectors("rack", "a", "b")
	o.Spec.ServiceSelectors = w.seldomSelectors("app", "web", "db")
	o.Spec.Peers = pick(w.dice, nil, nil, []string{"peer-0"}, []string{"peer-1"})
	bits := 0
	if len(o.Spec.ServiceSelectors) == 0 {
		bits = pick(w.dice, 0, 0, 4, 8)
		o.Spec.AggregationLength, o.Spec.AggregationLengthV6 = new(int32(32-bits)), new(int32(128-bits))
	}
	// Of routes alike, MetalLB refuses those that differ in this.
	o.Spec.LocalPref, o.Spec.ASPathPrepend = w.prefs[bits], int32(w.prefs[bits]%100)
	for _, name := range []string{"65000:1", "65000:2", "large:65000:1:2", "blackhole", "far"} {
		if w.seldom(4) {
			o.Spec.Communities = append(o.Spec.Communities, name)
		}
	}
	w.bgp = append(w.bgp, o)
}

func (w *announcementWorld) drawPeer(i int) {
	o := &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("peer-%d", i)}}
	o.Spec.MyASN, o.Spec.ASN = 64500, 64501
	o.Spec.Address = pick(w.dice, fmt.Sprintf("172.16.0.%d", 100+i), fmt.Sprintf("fd16::%d", 100+i))
	o.Spec.NodeSelectors = w.seldomSelectors("rack", "a", "b")
	o.Spec.DualStackAddressFamily = w.seldom(2)
	w.peers = append(w.peers, o)
}

func (w *announcementWorld) drawService(i int) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s%d", i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0))}}
	s.Labels = pick(w.dice, nil, map[string]string{"app": "web"}, map[string]string{"app": "db"})
	s.Spec.Type = pick(w.dice, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP)
	s.Spec.Selector = map[string]string{"app": "web"}
	s.Spec.ExternalTrafficPolicy = pick(w.dice, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	s.Spec.Ports = []corev1.ServicePort{{Port: int32(80 + i)}}
	pool, host := w.IntN(2), 10+i
	if w.seldom(3) && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyCluster {
		host = 50
		s.Annotations = map[string]string{"metallb.io/allow-shared-ip": "k"}
	}
	v4, v6 := fmt.Sprintf("10.0.%d.%d", pool, host), fmt.Sprintf("fd00:%d::%d", pool, host)
	for _, ip := range pick(w.dice, []string{v4}, []string{v6}, []string{v4, v6}, []string{v6, v4}, []string{"192.0.2.1"}) {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	w.services, w.slices = append(w.services, s), append(w.slices, w.drawEndpoints(s))
}

// drawEndpoints are the same in both families, since MetalLB does not look at those.
func (w *announcementWorld) drawEndpoints(s *corev1.Service) (all []*discoveryv1.EndpointSlice) {
	var endpoints []discoveryv1.Endpoint
	for i := range w.IntN(4) {
		e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.0.%d", i+1)}}
		e.NodeName = pick(w.dice, nil, new("n0"), new("n1"), new("n2"), new("n9"))
		e.Conditions.Ready = pick(w.dice, nil, new(true), new(true), new(false))
		if e.Conditions.Ready != nil && !*e.Conditions.Ready { // of kube-proxy's reading see TestPicksEndpointsAsKubeProxy
			e.Conditions.Serving = new(w.seldom(2))
			e.Conditions.Terminating = e.Conditions.Serving
			if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
				e.Conditions.Serving = new(false) // with ours a node whose endpoints end leaves it to others
			}
		}
		endpoints = append(endpoints, e)
	}
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-" + strings.ToLower(string(family)), Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}}}
		slice.AddressType, slice.Endpoints = family, endpoints
		slice.Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}
		all = append(all, slice)
	}
	return all
}

// metalLB is what MetalLB's speakers make of the world.
func (w *announcementWorld) metalLB(oracle *lab.Oracle) (answer struct {
	Error string
	Nodes map[string]announcementAnswer
}, err error) {
	err = oracle.Ask(map[string]any{
		"ipaddresspools": w.pools, "l2advertisements": w.l2, "bgpadvertisements": w.bgp, "bgppeers": w.peers, "communities": w.communities,
		"nodes": w.nodes, "Services": w.services, "Slices": w.slices,
	}, &answer)
	return answer, err
}

// cluster is the world as ours reads it.
func (w *announcementWorld) cluster() *snapshot.Cluster {
	return snapshot.Of(slices.Concat(objectsOf(w.nodes), objectsOf(w.pools), objectsOf(w.l2), objectsOf(w.bgp), objectsOf(w.peers),
		objectsOf(w.communities), objectsOf(w.services), objectsOf(slices.Concat(w.slices...)))...)
}

// view is that of a speaker which knows some others.
func (w *announcementWorld) view(alive ...string) announce.View {
	v := announce.View{Alive: map[string]struct{}{}, Facts: map[string]announce.Facts{}}
	for _, name := range alive {
		v.Alive[name] = struct{}{}
	}
	lan := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("fd00::/16")}
	for _, n := range w.nodes {
		v.Facts[n.Name] = announce.Facts{Interfaces: []announce.Interface{{Name: "eth0", Routes: lan, Up: true}, {Name: "eth1", Routes: lan, Up: true}}}
	}
	return v
}

func (w *announcementWorld) compare(theirs map[string]announcementAnswer) (differ []string) {
	c, now := w.cluster(), time.Unix(1000, 0)
	var names []string
	for _, n := range w.nodes {
		names = append(names, n.Name)
		plan := announce.Compile(c, n.Name, w.view(n.Name), now, announce.Options{})
		differ = append(differ, w.compareLayer2(n.Name, theirs[n.Name], plan)...)
		differ = append(differ, w.compareBGP(n.Name, theirs[n.Name], plan)...)
	}
	notReady := func(n *corev1.Node) bool { return n.Status.Conditions[0].Status != corev1.ConditionTrue }
	if slices.ContainsFunc(w.nodes, notReady) { // to which ours prefers all others
		return differ
	}
	return append(differ, w.compareOwners(theirs, announce.Compile(c, names[0], w.view(names...), now, announce.Options{}))...)
}

func (w *announcementWorld) compareOwners(theirs map[string]announcementAnswer, plan *announce.Plan) (differ []string) {
	for i, s := range w.services {
		best := int64(-1)
		for _, node := range theirs {
			if said, may := node.Layer2["default/"+s.Name]; may {
				best = max(best, said.Weight)
			}
		}
		for _, a := range loadbalancer.Addresses(s) {
			owner := plan.L2.Owners.Of(a)
			said, may := theirs[owner].Layer2["default/"+s.Name]
			if !w.shares(s) && !w.isIdle(i) && (may != (best >= 0) || may && said.Weight < best) {
				differ = append(differ, fmt.Sprintf("ours gives %s of %s to %q, of weight %d, and MetalLB to one of %d", a, s.Name, owner, said.Weight, best))
			}
		}
	}
	return differ
}

// shares reports whether somebody else may have the address of a Service: MetalLB elects a node
// for each Service, and ours one for each address.
func (w *announcementWorld) shares(s *corev1.Service) bool { return s.Annotations != nil }

// isIdle reports whether a Service has no endpoint that serves: on layer 2 ours answers for its
// addresses, so that clients are refused and need not wait.
func (w *announcementWorld) isIdle(service int) bool {
	return !slices.ContainsFunc(w.slices[service][0].Endpoints, func(e discoveryv1.Endpoint) bool {
		return loadbalancer.StateOf(e.Conditions).Serves()
	})
}

func (w *announcementWorld) compareLayer2(node string, theirs announcementAnswer, plan *announce.Plan) (differ []string) {
	taken := map[netip.Addr]announce.Take{}
	for _, take := range plan.L2.Take {
		taken[take.Address] = take
	}
	for i, s := range w.services {
		said, may := theirs.Layer2["default/"+s.Name]
		on := said.Interfaces
		if len(on) == 0 {
			on = []string{"eth0", "eth1"}
		}
		for _, a := range loadbalancer.Addresses(s) {
			take, does := taken[a]
			switch {
			case w.shares(s) || w.isIdle(i):
			case may != does:
				differ = append(differ, fmt.Sprintf("%s may have %s of %s: %v by MetalLB, %v by ours", node, a, s.Name, may, does))
			case may && !slices.Equal(on, take.Interfaces):
				differ = append(differ, fmt.Sprintf("%s answers for %s of %s on %v by MetalLB, on %v by ours", node, a, s.Name, on, take.Interfaces))
			}
		}
	}
	return differ
}

func (w *announcementWorld) compareBGP(node string, theirs announcementAnswer, plan *announce.Plan) (differ []string) {
	ours := map[string][]announce.Route{}
	for _, s := range plan.BGP.Sessions {
		ours[s.Name] = s.Routes
	}
	for _, p := range w.peers {
		told, has := theirs.BGP[p.Name]
		routes, does := ours[p.Name]
		if has != does {
			differ = append(differ, fmt.Sprintf("%s has a session with %s: %v by MetalLB, %v by ours", node, p.Name, has, does))
			continue
		}
		a, b := routeWords{}, routeWords{}
		for _, t := range told {
			if p.Spec.DualStackAddressFamily || t.Prefix.Addr().Is4() == netip.MustParseAddr(p.Spec.Address).Is4() {
				a.add(t.Prefix, t.LocalPref, t.Prepend, t.Communities)
			}
		}
		for _, r := range routes {
			b.add(r.Prefix, r.Attributes.LocalPref, r.Attributes.Prepend, communityTexts(r.Attributes))
		}
		if !maps.EqualFunc(a, b, slices.Equal) {
			differ = append(differ, fmt.Sprintf("%s tells %s %v by MetalLB, %v by ours", node, p.Name, a, b))
		}
	}
	return differ
}

// routeWords are what is told of each prefix, by whatever advertisements, sorted.
type routeWords map[netip.Prefix][]string

func (r routeWords) add(prefix netip.Prefix, localPref uint32, prepend int, communities []string) {
	words := append(r[prefix], fmt.Sprintf("localPref=%d", localPref), fmt.Sprintf("prepend=%d", prepend))
	for _, c := range communities {
		words = append(words, strings.TrimPrefix(c, "large:"))
	}
	slices.Sort(words)
	r[prefix] = slices.Compact(words)
}

func communityTexts(a *announce.Attributes) (list []string) {
	for _, c := range a.Communities {
		list = append(list, fmt.Sprintf("%d:%d", c>>16, c&0xffff))
	}
	for _, c := range a.LargeCommunities {
		list = append(list, fmt.Sprintf("%d:%d:%d", c.Global, c.Local1, c.Local2))
	}
	return list
}

// String is the world for a person.
func (w *announcementWorld) String() string {
	var b strings.Builder
	line := func(name string, spec any) {
		text, _ := json.Marshal(spec)
		fmt.Fprintf(&b, "  %s: %s\n", name, text)
	}
	for _, n := range w.nodes {
		line(n.Name, map[string]any{"labels": n.Labels, "conditions": n.Status.Conditions, "unschedulable": n.Spec.Unschedulable})
	}
	for _, p := range w.pools {
		line(p.Name, p.Labels)
	}
	for _, o := range w.l2 {
		line(o.Name, o.Spec)
	}
	for _, o := range w.bgp {
		line(o.Name, o.Spec)
	}
	for _, o := range w.peers {
		line(o.Name, o.Spec)
	}
	for i, s := range w.services {
		line(s.Name, []any{s.Labels, s.Annotations, s.Spec.Type, s.Spec.ExternalTrafficPolicy, loadbalancer.Addresses(s), w.slices[i][0].Endpoints})
	}
	return b.String()
}
