package announce

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// slice is one EndpointSlice of a Service.
func slice(name, service string, family discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: family, Ports: offered(), Endpoints: endpoints,
	}
}

// endpoint is on a node; "ready", "ending" or "dead".
func endpoint(node, state string) discoveryv1.Endpoint {
	yes, no := true, false
	e := discoveryv1.Endpoint{NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &no, Serving: &no}}
	switch state {
	case "ready":
		e.Conditions.Ready, e.Conditions.Serving = &yes, &yes
	case "ending":
		e.Conditions.Serving, e.Conditions.Terminating = &yes, &yes
	}
	return e
}

// Whatever happens to endpoints, and sometimes to something else: a plan that is said
// to stand is the one that would be made.
func TestAPlanThatStandsIsTheOneThatWouldBeMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		c := snapshot.Of(w.objects...)
		opts := Options{ExternalIPs: true}
		plan := Compile(c, "n0", w.view, epoch0(), opts)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			was := c
			for range rapid.IntRange(1, 3).Draw(t, "at once") {
				c = change(t, c, len(w.nodes))
			}
			fresh := Compile(c, "n0", w.view, epoch0(), opts)
			if plan.StillValid(was, c) {
				if !isSame(plan, fresh) {
					t.Fatalf("it is said to stand:\n%+v\nand this is made anew:\n%+v", plan, fresh)
				}
				continue // as a speaker does, which keeps it
			}
			plan = fresh
		}
	})
}

// stir is something that happens to a Node, a SpeakerStatus or a Service of no address,
// which is read or is not.
func stir(t *rapid.T, c *snapshot.Cluster, nodes int) *snapshot.Cluster {
	name := fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "node"))
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		n, exists := c.Nodes.Get(nodeKey(name))
		if !exists {
			return c.With(readyNode(name, ""))
		}
		n = n.DeepCopy()
		rapid.SampledFrom([]func(){
			func() { n.Status.Capacity = corev1.ResourceList{} },
			func() { n.Annotations = map[string]string{"a": "b"} },
			func() { n.Status.Conditions[0].LastTransitionTime = metav1.Now() },
			func() { n.Labels = map[string]string{"edge": "yes"} },
			func() { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: deletionTaint}) },
			func() { n.Status.Conditions[0].Status = corev1.ConditionFalse },
			func() { n.Status.Addresses[0].Address = "10.0.0.100" },
		}).Draw(t, "of the Node")()
		return c.With(n)
	case 1:
		s, exists := c.SpeakerStatuses.Get(nodeKey(name))
		if s = s.DeepCopy(); !exists || rapid.IntRange(0, 9).Draw(t, "anew") == 0 {
			s = &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		rapid.SampledFrom([]func(){
			func() { s.Status.Members = v1alpha1.SpeakerMembers{Alive: 3, NotAlive: []string{"n9: gone"}} },
			func() { s.Status.BGPSessions = []v1alpha1.BGPSession{{Peer: "r"}} },
			func() { s.Status.GossipSecrets = []string{"a"} },
			func() { s.Status.Leaving = !s.Status.Leaving },
			func() {
				s.Status.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0", Up: true, Prefixes: []string{"10.0.0.9/24"}}}
			},
			func() {
				s.Status.Announcing = []v1alpha1.Announcing{{Service: "default/s00", Address: "10.0.0.100", Protocol: "l2", Epoch: 7}}
				s.Status.AnnouncingCount = 1
			},
			func() {
				s.Status.Announcing = slices.Clone(s.Status.Announcing[:min(1, len(s.Status.Announcing))])
				for range rapid.IntRange(0, 2).Draw(t, "claims") {
					s.Status.Announcing = append(s.Status.Announcing, v1alpha1.Announcing{
						Service: "default/s01", Address: fmt.Sprintf("10.0.0.%d", rapid.IntRange(100, 112).Draw(t, "address")),
						Protocol: rapid.SampledFrom([]string{"l2", "l2", "l2", "bgp"}).Draw(t, "protocol"), Epoch: rapid.Int64Range(0, 8).Draw(t, "epoch"),
						Preference: rapid.SampledFrom([]string{"", "", "old"}).Draw(t, "preference"),
					})
				}
				s.Status.AnnouncingCount = int64(len(s.Status.Announcing))
			},
		}).Draw(t, "of the status")()
		return c.With(s)
	}
	return c.With(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inner"}})
}

// change is one more thing that happens.
func change(t *rapid.T, c *snapshot.Cluster, nodes int) *snapshot.Cluster {
	service := fmt.Sprintf("s%02d", rapid.IntRange(0, 12).Draw(t, "service"))
	name := fmt.Sprintf("%s-%d", service, rapid.IntRange(1, 2).Draw(t, "slice"))
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 3, 4, 5:
		return stir(t, c, nodes)
	case 0:
		return c.Without(snapshot.EndpointSlice, snapshot.Key{Namespace: "default", Name: name})
	case 1: // a label moves it
		service = fmt.Sprintf("s%02d", rapid.IntRange(0, 12).Draw(t, "other service"))
	case 2:
		if svc, exists := c.Services.Get(snapshot.Key{Namespace: "default", Name: service}); exists {
			svc = svc.DeepCopy()
			svc.Spec.ExternalTrafficPolicy = rapid.SampledFrom([]corev1.ServiceExternalTrafficPolicy{"", "Local"}).Draw(t, "policy")
			return c.With(svc)
		}
	}
	family := rapid.SampledFrom([]discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}).Draw(t, "family")
	s := slice(name, service, family)
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		node := fmt.Sprintf("n%d", rapid.IntRange(0, nodes).Draw(t, "node")) // the last does not exist
		s.Endpoints = append(s.Endpoints, endpoint(node, rapid.SampledFrom([]string{"ready", "ready", "ending", "dead"}).Draw(t, "state")))
	}
	return c.With(s)
}

// What changes no plan is known not to.
func TestWhatEndpointsDoMostlyChangesNoPlan(t *testing.T) {
	v4 := discoveryv1.AddressTypeIPv4
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
	for _, name := range []string{"n0", "n1"} {
		w.addNode(twinNode{name: name, alive: true, ready: true, subnet: true}, false)
	}
	w.objects = append(w.objects, lanPool("10.0.0.0/24"))
	w.addService("cluster", twinAddr{addr: netip.MustParseAddr("10.0.0.100")}, 0)
	w.addService("local", twinAddr{addr: netip.MustParseAddr("10.0.0.101"), local: map[string]bool{}}, 0)
	speaker := func(name string, status v1alpha1.SpeakerStatusStatus) *v1alpha1.SpeakerStatus {
		return &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
	}
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := readyNode("n2", "")
		change(n)
		return n
	}
	all := []v1alpha1.SpeakerMembers{{Alive: 3, Expected: 3}, {Alive: 2, Expected: 3, NotAlive: []string{"n2: gone"}}}
	w.objects = append(w.objects, slice("local-1", "local", v4, endpoint("n0", "ready")), readyNode("n2", ""),
		speaker("n0", v1alpha1.SpeakerStatusStatus{Members: all[0]}), speaker("n1", v1alpha1.SpeakerStatusStatus{Members: all[0]}))
	c := snapshot.Of(w.objects...)
	plan := Compile(c, "n0", w.view, epoch0(), Options{})
	for _, tt := range []struct {
		name   string
		is     *snapshot.Cluster
		stands bool
	}{
		{"nothing", c, true},
		{"an endpoint of a Service of policy Cluster", c.With(slice("cluster-1", "cluster", v4, endpoint("n1", "ready"))), true},
		{"an endpoint of a Service without an address", c.With(slice("web-1", "web", v4, endpoint("n1", "ready"))), true},
		{"an endpoint of no Service", c.With(slice("none", "", v4, endpoint("n1", "ready"))), true},
		{"a second endpoint on a node", c.With(slice("local-2", "local", v4, endpoint("n0", "ready"))), true},
		{"an endpoint of another family", c.With(slice("local-6", "local", discoveryv1.AddressTypeIPv6, endpoint("n1", "ready"))), true},
		{"an endpoint that is not ready yet", c.With(slice("local-2", "local", v4, endpoint("n1", "dead"))), true},
		{"the first endpoint on a node", c.With(slice("local-2", "local", v4, endpoint("n1", "ready"))), false},
		{"the last endpoint goes", c.Without(snapshot.EndpointSlice, snapshot.Key{Namespace: "default", Name: "local-1"}), false},
		{"the last endpoint ends", c.With(slice("local-1", "local", v4, endpoint("n0", "ending"))), false},
		{"its slice moves to another Service", c.With(slice("local-1", "cluster", v4, endpoint("n0", "ready"))), false},
		{"a Node", c.With(readyNode("n3", "")), false},
		{"a Node goes", c.Without(snapshot.Node, snapshot.Key{Name: "n2"}), false},
		{"a kubelet that lives", c.With(node(func(n *corev1.Node) {
			n.ResourceVersion, n.Status.Allocatable = "9", corev1.ResourceList{}
			n.Status.Conditions[0].LastTransitionTime, n.Status.Conditions[0].Message = metav1.Now(), "posting ready status"
		})), true},
		{"a Node that is not ready", c.With(node(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })), false},
		{"a Node of another label", c.With(node(func(n *corev1.Node) { n.Labels = map[string]string{"rack": "7"} })), false},
		{"a Node that is to go", c.With(node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: deletionTaint}} })), false},
		{"who is alive, as another sees it", c.With(speaker("n1", v1alpha1.SpeakerStatusStatus{Members: all[1]})), true},
		{"a session of another with its router", c.With(speaker("n1", v1alpha1.SpeakerStatusStatus{Members: all[0], BGPSessions: []v1alpha1.BGPSession{{Peer: "r"}}})), true},
		{"what this one says", c.With(speaker("n0", v1alpha1.SpeakerStatusStatus{Members: all[1]})), false},
		{"another has a new key", c.With(speaker("n1", v1alpha1.SpeakerStatusStatus{Members: all[0], GossipKey: "k"})), false},
		{"another announces", c.With(speaker("n1", v1alpha1.SpeakerStatusStatus{Members: all[0], Announcing: []v1alpha1.Announcing{{Address: "10.0.0.100"}}})), false},
		{"a speaker more", c.With(speaker("n2", v1alpha1.SpeakerStatusStatus{})), false},
		{"a Service without an address", c.With(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inner"}}), true},
		{"an Ingress", c.With(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}), true},
		{"an IngressClass", c.With(&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "quayside"}}), true},
		{"a Namespace", c.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}), true},
		{"a ConfigMap", c.With(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "options"}}), true},
		{"a Secret, which may have a password", c.With(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tor"}}), false},
		{"a Service with an address goes", c.Without(snapshot.Service, snapshot.Key{Namespace: "default", Name: "cluster"}), false},
	} {
		if got := plan.StillValid(c, tt.is); got != tt.stands {
			t.Errorf("%s: stands is %v, want %v", tt.name, got, tt.stands)
		}
	}
}

// BenchmarkEndpoint is one endpoint more in a large cluster, which changes no plan.
func BenchmarkEndpoint(b *testing.B) {
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}}}
	for i := range 5000 {
		w.addNode(twinNode{name: fmt.Sprintf("n%d", i), alive: true, ready: true, subnet: true}, false)
	}
	w.objects = append(w.objects, lanPool("10.1.0.0/16"))
	for i := range 1000 {
		local := map[string]bool{fmt.Sprintf("n%d", 3*i): true, fmt.Sprintf("n%d", 3*i+1): true}
		w.addService(fmt.Sprintf("s%d", i), twinAddr{addr: addrOf(i), local: local}, i)
	}
	w.view.Facts, w.view.Claims = nil, map[netip.Addr]Claim{}
	for i := range 1000 {
		w.view.Claims[addrOf(i)] = Claim{1, fmt.Sprintf("n%d", 3*i)}
	}
	was := snapshot.Of(w.objects...)
	plan := Compile(was, "n0", w.view, epoch0(), Options{})
	is := was.With(slice("s7-2", "s7", discoveryv1.AddressTypeIPv4, endpoint("n21", "ready")))
	if !plan.StillValid(was, is) {
		b.Fatal("it does not stand")
	}
	b.Run("stands", func(b *testing.B) {
		for b.Loop() {
			plan.StillValid(was, is)
		}
	})
	moved := was.With(slice("s7-2", "s7", discoveryv1.AddressTypeIPv4, endpoint("n99", "ready")))
	b.Run("anew", func(b *testing.B) {
		for b.Loop() {
			Compile(moved, "n0", w.view, epoch0(), Options{})
		}
	})
	b.Run("resumed", func(b *testing.B) {
		b.ReportAllocs()
		view := w.view
		view.Before = Made{plan, was}
		for b.Loop() {
			Compile(moved, "n0", view, epoch0(), Options{})
		}
	})
}
