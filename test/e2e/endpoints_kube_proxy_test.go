package e2e

import (
	"context"
	"encoding/json"
	"fmt"
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
	"quayside.io/command/explain"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
	"quayside.io/test/lab"
)

// Drawn Services are given to kube-proxy's own code and to ours: on each node the proxy takes
// requests to the endpoints to which kube-proxy takes connections, and routers are told of an
// address by the nodes on which kube-proxy takes it somewhere.
func TestPicksEndpointsAsKubeProxy(t *testing.T) {
	beside(t)
	lab.Require(t) // not for its own sake: Kubernetes takes minutes to build the first time

	oracle, err := lab.NewKubeProxyOracle(context.WithoutCancel(t.Context()), t.Logf)
	oracle = until(t, oracle, err)
	differ := 0
	for seed := range drawn(1000, 50_000) {
		w := drawEndpointWorld(throw(seed, 4))
		var differences []string
		by := map[string]endpointAnswer{}
		for _, node := range w.nodes {
			theirs, err := w.ask(oracle, node)
			if err != nil {
				t.Fatal(err)
			}
			by[node.Name] = theirs
			differences = slices.Concat(differences, w.comparePicks(node, theirs), w.compareRoute(node, theirs))
		}
		for _, difference := range append(differences, w.compareTrace(by)...) {
			t.Errorf("cluster %d: %s\n%s", seed, difference, w)
			if differ++; differ > 5 {
				t.FailNow()
			}
		}
	}
}

// endpointWorld is a Service with an address, and the nodes of its cluster.
type endpointWorld struct {
	dice
	nodes   []*corev1.Node
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice
}

// endpointAnswer is what kube-proxy says, by port; see test/lab/kube/endpoints.
type endpointAnswer map[string]struct {
	Cluster, Local []string
	Reachable      bool
}

func drawEndpointWorld(d dice) *endpointWorld {
	w := &endpointWorld{dice: d}
	for i := range 3 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.16.0.%d", i+1)}}
		if zone := pick(d, "", "a", "b"); zone != "" {
			n.Labels[corev1.LabelTopologyZone] = zone
		}
		w.nodes = append(w.nodes, n)
	}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies = "10.96.0.10", []string{"10.96.0.10"}, []corev1.IPFamily{corev1.IPv4Protocol}
	s.Spec.ExternalTrafficPolicy = pick(d, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		s.Spec.HealthCheckNodePort = 30010
	}
	s.Spec.InternalTrafficPolicy = pick(d, nil, new(corev1.ServiceInternalTrafficPolicyCluster), new(corev1.ServiceInternalTrafficPolicyLocal))
	s.Spec.Ports = pick(d,
		[]corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		[]corev1.ServicePort{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "admin", Port: 81, Protocol: corev1.ProtocolTCP}},
	)
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.10"}}
	w.service = s
	hints, left, alike := d.IntN(4), d.Perm(12), d.IntN(2) == 0
	for i := range d.IntN(4) {
		slice := w.drawSlice(i, hints, alike, &left)
		if !alike {
			slice.Ports = w.drawPorts(slice.Ports)
		}
		w.slices = append(w.slices, slice)
	}
	return w
}

// drawPorts are those that some pods have of the ports: they lack what they do not name, or have
// it by another protocol.
func (w *endpointWorld) drawPorts(ports []discoveryv1.EndpointPort) (has []discoveryv1.EndpointPort) {
	for _, p := range ports {
		switch w.IntN(6) {
		case 0:
		case 1:
			p.Protocol = new(corev1.ProtocolUDP)
			has = append(has, p)
		default:
			has = append(has, p)
		}
	}
	return has
}

// drawSlice is one of the Service, whose endpoints have hints never, seldom, mostly or always.
// Of the addresses that are left, terminating endpoints have those from 6 on: the same six, if
// shared.
func (w *endpointWorld) drawSlice(i, hints int, shared bool, left *[]int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s-%d", i), Labels: map[string]string{discoveryv1.LabelServiceName: "s"}}}
	s.AddressType = discoveryv1.AddressTypeIPv4
	for _, p := range w.service.Spec.Ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(p.Port + 8000)})
	}
	for range w.IntN(4) {
		address := (*left)[0]
		*left = (*left)[1:]
		e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.0.%d", 1+address)}}
		if shared {
			e.Addresses[0] = fmt.Sprintf("10.244.0.%d", 1+address%6)
		}
		e.NodeName = pick(w.dice, nil, new("n0"), new("n1"), new("n2"), new("n9"))
		e.Conditions.Ready = pick(w.dice, nil, new(true), new(false), new(false))
		e.Conditions.Serving = pick(w.dice, nil, new(true), new(false))
		e.Conditions.Terminating = pick(w.dice, nil, new(false))
		if address >= 6 {
			e.Conditions.Ready, e.Conditions.Terminating = new(false), new(true)
		}
		if w.IntN(3) < hints {
			e.Hints = &discoveryv1.EndpointHints{}
			for range w.IntN(3) {
				e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: pick(w.dice, "a", "b", "c")})
			}
			for range w.IntN(3) {
				e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: pick(w.dice, "n0", "n1", "n9")})
			}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// ask is what kube-proxy makes of the Service on a node.
func (w *endpointWorld) ask(oracle *lab.Oracle, node *corev1.Node) (answer endpointAnswer, err error) {
	err = oracle.Ask(map[string]any{"Service": w.service, "Slices": w.slices, "Node": node.Name, "Labels": node.Labels, "Family": corev1.IPv4Protocol}, &answer)
	return answer, err
}

// isLocal reports whether a policy of the Service confines the proxy to its own node.
func (w *endpointWorld) isLocal() bool {
	internal := w.service.Spec.InternalTrafficPolicy
	return w.service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal || internal != nil && *internal == corev1.ServiceInternalTrafficPolicyLocal
}

func (w *endpointWorld) comparePicks(node *corev1.Node, theirs endpointAnswer) (differ []string) {
	for _, p := range w.service.Spec.Ports {
		said := theirs[p.Name].Cluster
		if w.isLocal() {
			said = theirs[p.Name].Local
		}
		set := balance.Compile(w.service, w.slices, balance.PortRef{Number: p.Port}, node.Name, node.Labels[corev1.LabelTopologyZone], balance.Options{})
		var ours []string
		for _, e := range set.Endpoints {
			ours = append(ours, e.Addr.String())
		}
		slices.Sort(said)
		slices.Sort(ours)
		if !slices.Equal(said, ours) {
			differ = append(differ, fmt.Sprintf("node %s: port %d leads to %v by kube-proxy, to %v by ours (%s)", node.Name, p.Port, said, ours, set.Why))
		}
	}
	return differ
}

// compareRoute compares who tells routers of the address. With Local, ours leaves it to nodes
// with endpoints that are ready, if there are any, so that the others may end.
func (w *endpointWorld) compareRoute(node *corev1.Node, theirs endpointAnswer) []string {
	said, served := false, false // somewhere, on this node
	for _, port := range theirs {
		said, served = said || port.Reachable, served || len(port.Local) > 0
	}
	if w.service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		isReady := func(at func(node string) bool) bool {
			return slices.ContainsFunc(w.slices, func(s *discoveryv1.EndpointSlice) bool {
				return w.offers(s) && slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
					return e.NodeName != nil && at(*e.NodeName) && loadbalancer.StateOf(e.Conditions) == loadbalancer.Ready
				})
			})
		}
		here := isReady(func(n string) bool { return n == node.Name })
		somewhere := isReady(func(n string) bool { return n != "n9" }) // which does not exist
		said = served && (here || !somewhere)
	}
	if ours := w.tells(node.Name); said != ours {
		return []string{fmt.Sprintf("node %s: routers are to be told: %v by kube-proxy, %v by ours", node.Name, said, ours)}
	}
	return nil
}

// compareTrace compares what `quayside trace` says of the Service, which some nodes announce, with
// whether kube-proxy takes connections somewhere on one of them.
func (w *endpointWorld) compareTrace(theirs map[string]endpointAnswer) (differ []string) {
	objects, announcing := objectsOf(w.nodes), []string{}
	for _, n := range w.nodes {
		status := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		if status.Status.Members.Alive = 3; w.IntN(2) == 0 {
			announcing = append(announcing, n.Name)
			status.Status.Announcing = []v1alpha1.Announcing{{Address: "10.0.0.10", Service: "default/s", Protocol: "l2"}}
		}
		objects = append(objects, status)
	}
	if len(announcing) == 0 {
		return nil
	}
	c := snapshot.Of(append(append(objects, w.service), objectsOf(w.slices)...)...)
	target, err := explain.ParseTarget("service/default/s")
	if err != nil {
		return []string{err.Error()}
	}
	path := explain.Trace(explain.Inputs{Cluster: c, Routes: route.Compile(c, nil, route.Options{}), Now: time.Unix(1000, 0)}, target)
	for _, p := range w.service.Spec.Ports {
		goes := slices.ContainsFunc(announcing, func(n string) bool {
			if w.service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
				return len(theirs[n][p.Name].Local) > 0
			}
			return len(theirs[n][p.Name].Cluster) > 0
		})
		i := slices.IndexFunc(path.Links, func(l explain.Link) bool {
			return l.Name == "endpoints" && strings.HasPrefix(l.Says, fmt.Sprintf("port %d/TCP of default/s: ", p.Port))
		})
		if i < 0 || goes != (path.Links[i].State == explain.Works) {
			differ = append(differ, fmt.Sprintf("port %d, announced by %v, is served: %v by kube-proxy; trace: %+v", p.Port, announcing, goes, path.Links))
		}
	}
	return differ
}

// offers reports whether pods of a slice have a port of the Service.
func (w *endpointWorld) offers(s *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return *p.Protocol == corev1.ProtocolTCP })
}

// tells reports whether ours tells a router of the address.
func (w *endpointWorld) tells(node string) bool {
	pool := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.Addresses = []string{"10.0.0.0/24"}
	peer := &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: "router"}}
	peer.Spec.MyASN, peer.Spec.ASN, peer.Spec.Address = 64500, 64501, "172.16.0.100"
	objects := append(objectsOf(w.nodes), pool, peer, w.service, &v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	c := snapshot.Of(append(objects, objectsOf(w.slices)...)...)
	plan := announce.Compile(c, node, announce.View{Alive: map[string]struct{}{node: {}}}, time.Unix(1000, 0), announce.Options{})
	return slices.ContainsFunc(plan.BGP.Sessions, func(s announce.Session) bool {
		return slices.ContainsFunc(s.Routes, func(r announce.Route) bool { return r.Prefix == netip.MustParsePrefix("10.0.0.10/32") })
	})
}

// String is the world for a person.
func (w *endpointWorld) String() string {
	var b strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "  %s in zone %q\n", n.Name, n.Labels[corev1.LabelTopologyZone])
	}
	spec := w.service.Spec
	for _, part := range []any{[]any{spec.ExternalTrafficPolicy, spec.InternalTrafficPolicy, spec.Ports}, w.slices} {
		text, _ := json.Marshal(part)
		fmt.Fprintf(&b, "  %s\n", text)
	}
	return b.String()
}
