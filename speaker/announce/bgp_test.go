package announce

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/lbpool"
)

// bgpWorld is a cluster of one node, r1 and r2 its routers, whose Services have
// addresses in 10.1.0.0/24.
type bgpWorld struct {
	pools    []*v1alpha1.IPAddressPool
	adverts  []*v1alpha1.BGPAdvertisement // the oldest first
	services []netip.Addr
	idle     map[netip.Addr]bool // those without an endpoint
	nodeAddr netip.Addr
}

func genBGPWorld(t *rapid.T) *bgpWorld {
	w := &bgpWorld{idle: map[netip.Addr]bool{}, nodeAddr: netip.AddrFrom4([4]byte{10, 1, 0, byte(rapid.IntRange(0, 255).Draw(t, "node"))})}
	from := 0
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		p := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}}
		for range rapid.IntRange(1, 2).Draw(t, "ranges") {
			from += rapid.IntRange(0, 20).Draw(t, "gap")
			to := min(255, from+rapid.IntRange(0, 90).Draw(t, "size"))
			if from > 255 {
				break
			}
			p.Spec.Addresses = append(p.Spec.Addresses, fmt.Sprintf("10.1.0.%d-10.1.0.%d", from, to))
			from = to + 1
		}
		w.pools = append(w.pools, p)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "advertisements") {
		a := &v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%d", rapid.IntRange(0, 9).Draw(t, "name")*10+i)}}
		a.CreationTimestamp = metav1.NewTime(epoch0().Add(time.Duration(i) * time.Second))
		length := int32(rapid.IntRange(24, 33).Draw(t, "length"))
		if length < 33 {
			a.Spec.AggregationLength = &length
		}
		a.Spec.LocalPref = uint32(rapid.IntRange(0, 2).Draw(t, "localPref"))
		a.Spec.ASPathPrepend = int32(rapid.IntRange(0, 2).Draw(t, "prepend"))
		a.Spec.Communities = rapid.SliceOfN(rapid.SampledFrom([]string{"1:1", "1:2", "2:1", "large:1:2:3"}), 0, 3).Draw(t, "communities")
		a.Spec.Peers = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"r1", "r2"}), 0, 2, rapid.ID).Draw(t, "peers")
		a.Spec.IPAddressPools = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p0", "p1", "p2"}), 0, 2, rapid.ID).Draw(t, "selects")
		w.adverts = append(w.adverts, a)
	}
	for _, last := range rapid.SliceOfNDistinct(rapid.IntRange(0, 255), 0, 12, rapid.ID).Draw(t, "services") {
		a := netip.AddrFrom4([4]byte{10, 1, 0, byte(last)})
		w.services, w.idle[a] = append(w.services, a), rapid.IntRange(0, 3).Draw(t, "idle") == 0
	}
	return w
}

func (w *bgpWorld) plan() *Plan {
	node := readyNode("n1", "")
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: w.nodeAddr.String()}}
	objects := []snapshot.Object{node, bgpPeer("r1", "10.0.0.1"), bgpPeer("r2", "10.0.0.2")}
	for _, p := range w.pools {
		objects = append(objects, p)
	}
	for _, a := range w.adverts {
		objects = append(objects, a)
	}
	for i, a := range w.services {
		name := fmt.Sprintf("s%02d", i)
		objects = append(objects, balancer(name, a))
		if !w.idle[a] {
			objects = append(objects, servedBy(name)...)
		}
	}
	return Compile(snapshot.Of(objects...), "n1", View{}, epoch0(), Options{})
}

func bgpPeer(name, address string) *v1alpha1.BGPPeer {
	return &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.BGPPeerSpec{MyASN: 64500, ASN: 64512, Address: address}}
}

func balancer(name string, a netip.Addr) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	svc.Spec.Type, svc.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 80}}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: a.String()}}
	return svc
}

// poolOf is the pool that has a, by a look at all; "" none.
func (w *bgpWorld) poolOf(a netip.Addr) string {
	for _, p := range w.pools {
		for _, text := range p.Spec.Addresses {
			if r, err := lbpool.ParseRange(text); err == nil && r.Contains(a) {
				return p.Name
			}
		}
	}
	return ""
}

// prefixOf is what adv announces of a.
func (w *bgpWorld) prefixOf(adv *v1alpha1.BGPAdvertisement, a netip.Addr) netip.Prefix {
	host := netip.PrefixFrom(a, 32)
	if adv.Spec.AggregationLength == nil {
		return host
	}
	prefix, _ := a.Prefix(int(*adv.Spec.AggregationLength))
	for each := prefix.Addr(); prefix.Contains(each) && prefix != host; each = each.Next() {
		if w.poolOf(each) != w.poolOf(a) || each == w.nodeAddr {
			return host
		}
	}
	return prefix
}

// routes is the naive twin: every advertisement for every address.
func (w *bgpWorld) routes(peer string) []string {
	said := map[netip.Prefix]*Attributes{}
	for _, adv := range w.adverts { // the oldest speaks first
		for _, a := range w.services {
			pool := w.poolOf(a)
			named := len(adv.Spec.Peers) == 0 || slices.Contains(adv.Spec.Peers, peer)
			if pool == "" || a == w.nodeAddr || w.idle[a] || !named || len(adv.Spec.IPAddressPools) > 0 && !slices.Contains(adv.Spec.IPAddressPools, pool) {
				continue
			}
			p := w.prefixOf(adv, a)
			if said[p] == nil {
				said[p] = &Attributes{}
			}
			if said[p].LocalPref == 0 {
				said[p].LocalPref = adv.Spec.LocalPref
			}
			if said[p].Prepend == 0 {
				said[p].Prepend = int(adv.Spec.ASPathPrepend)
			}
			for _, c := range adv.Spec.Communities {
				said[p].add(c)
			}
			said[p].sort()
		}
	}
	var out []string
	for p, a := range said {
		out = append(out, p.String()+a.String())
	}
	slices.Sort(out)
	return out
}

func TestRoutesAreTheirTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genBGPWorld(t)
		sessions := w.plan().BGP.Sessions
		if len(sessions) != 2 {
			t.Fatalf("%d sessions", len(sessions))
		}
		for i := range sessions {
			var got []string
			for _, r := range sessions[i].Routes {
				got = append(got, r.Prefix.String()+r.Attributes.String())
			}
			slices.Sort(got)
			if want := w.routes(sessions[i].Name); !slices.Equal(got, want) {
				t.Fatalf("%s is told\n%q, want\n%q", sessions[i].Name, got, want)
			}
			if !slices.IsSortedFunc(sessions[i].Routes, compareRoutes) {
				t.Fatalf("%s: not in order: %v", sessions[i].Name, sessions[i].Routes)
			}
		}
	})
}

// Whatever the aggregates, no router sends a node what is not a pool's.
func TestRoutesCoverOnlyAddressesOfPools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genBGPWorld(t)
		for _, s := range w.plan().BGP.Sessions {
			for _, r := range s.Routes {
				for a := r.Prefix.Addr(); r.Prefix.Contains(a); a = a.Next() {
					if w.poolOf(a) == "" || a == w.nodeAddr {
						t.Fatalf("%s draws %s, which is no pool's or the node's own", r.Prefix, a)
					}
				}
			}
		}
	})
}

// rollout is a Service of policy Local and what n1, n2 and n3 remember of it.
type rollout struct {
	now    time.Time
	since  [3]map[netip.Addr]time.Time
	others [3]map[netip.Addr]Other
}

// announces steps on and says which nodes announce the address.
func (r *rollout) announces(after time.Duration, endpoints map[string]string) (who string) {
	r.now = r.now.Add(after)
	svc := balancer("web", addrAt(100))
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}}
	slice.AddressType, slice.Ports = discoveryv1.AddressTypeIPv4, offered()
	for node, is := range endpoints {
		ready, yes := is == "ready", true
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &yes, Terminating: &yes}})
	}
	c := snapshot.Of(readyNode("n1", ""), readyNode("n2", ""), readyNode("n3", ""), lanPool("10.0.0.0/24"), &v1alpha1.BGPAdvertisement{}, bgpPeer("r1", "10.0.0.254"), svc, slice)
	for i, name := range []string{"n1", "n2", "n3"} {
		p := Compile(c, name, View{Since: r.since[i], Others: r.others[i]}, r.now, Options{})
		r.since[i], r.others[i] = p.L2.Since, p.BGP.Others
		if len(p.BGP.Sessions[0].Routes) > 0 {
			who += name
		}
	}
	return who
}

// A rollout of a Service with policy Local leaves no moment in which no node
// announces it, nor one in which a node does whose kube-proxy may have no rules
// while another serves.
func TestARolloutIsAlwaysAnnounced(t *testing.T) {
	r := rollout{now: epoch0()}
	for i, step := range []struct {
		after     time.Duration
		endpoints map[string]string
		want      string
	}{
		{0, map[string]string{"n1": "ready"}, "n1"},
		{time.Minute, map[string]string{"n1": "ready", "n2": "ready"}, "n1"}, // n2 waits for its rules
		{time.Second, map[string]string{"n1": "ending", "n2": "ready"}, "n1"},
		{Settling - time.Second, map[string]string{"n1": "ending", "n2": "ready"}, "n1n2"},
		{handOverTime, map[string]string{"n1": "ending", "n2": "ready"}, "n2"},
		{time.Second, map[string]string{"n2": "ready"}, "n2"},
		{time.Minute, map[string]string{}, ""},
		{time.Second, map[string]string{"n1": "ready"}, "n1"},                     // nobody serves meanwhile
		{time.Millisecond, map[string]string{"n1": "ready", "n2": "ready"}, "n1"}, // and it goes on
		{Settling, map[string]string{"n1": "ready", "n2": "ready"}, "n1n2"},
		{time.Minute, map[string]string{"n1": "ending", "n2": "ready"}, "n2"}, // routers know n2 for long
		{time.Second, map[string]string{"n1": "ready", "n2": "ready"}, "n2"},
		{time.Minute, map[string]string{"n1": "ready", "n2": "ready"}, "n1n2"},
		{0, map[string]string{"n1": "ending", "n2": "ending", "n3": "ready"}, "n1n2"}, // and n3 not yet
		{Settling, map[string]string{"n1": "ending", "n2": "ending", "n3": "ready"}, "n1n2n3"},
		{handOverTime, map[string]string{"n1": "ending", "n2": "ending", "n3": "ready"}, "n3"},
		{time.Minute, map[string]string{"n1": "ready", "n2": "ready"}, ""}, // all at once
		{Settling, map[string]string{"n1": "ready", "n2": "ready"}, "n1n2"},
		{time.Second, map[string]string{"n1": "ending", "n2": "ending"}, "n1n2"}, // as long as they last
		{time.Second, map[string]string{"n1": "ending"}, "n1"},
		{time.Second, map[string]string{"n1": "ready", "n2": "ending"}, "n1n2"},
	} {
		if got := r.announces(step.after, step.endpoints); got != step.want {
			t.Fatalf("step %d, %v: announced by %q, want %q", i, step.endpoints, got, step.want)
		}
	}
}

// A speaker that starts finds endpoints that have been there: it waits for
// nothing.
func TestAStartAnnouncesAtOnce(t *testing.T) {
	r := rollout{now: epoch0()}
	if got := r.announces(0, map[string]string{"n1": "ready", "n2": "ready"}); got != "n1n2" {
		t.Errorf("announced by %q", got)
	}
}

// BenchmarkCompileBGP is a speaker's whole decision for addresses that four
// peers learn.
func BenchmarkCompileBGP(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		objects := []snapshot.Object{readyNode("n1", ""), lanPool("10.0.0.0/16"), &v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
			&v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.BGPAdvertisementSpec{Communities: []string{"1:1"}, Peers: []string{"r0", "r1"}}}}
		for i := range 4 {
			objects = append(objects, bgpPeer(fmt.Sprintf("r%d", i), fmt.Sprintf("172.16.0.%d", i)))
		}
		for i := range n {
			objects = append(objects, servedBy(fmt.Sprintf("s%05d", i))...)
			objects = append(objects, balancer(fmt.Sprintf("s%05d", i), netip.AddrFrom4([4]byte{10, 0, byte(10 + i>>8), byte(i)})))
		}
		c := snapshot.Of(objects...)
		b.Run(fmt.Sprintf("%dx4", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p := Compile(c, "n1", View{}, epoch0(), Options{}); len(p.BGP.Sessions[3].Routes) != n {
					b.Fatal(len(p.BGP.Sessions[3].Routes))
				}
			}
		})
	}
}
