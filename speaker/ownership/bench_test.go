package ownership

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// large is a fleet on one LAN, with a Service of policy Local for each of its
// addresses, which has endpoints on two nodes and lives on the first of them.
func large(nodes, services int) World {
	w := World{Synced: true, Members: &Members{
		Alive: map[string]struct{}{}, Claims: map[netip.Addr]announce.Claim{}, Facts: map[string]announce.Facts{}, Settled: true,
	}}
	all := []snapshot.Object{&v1alpha1.IPAddressPool{
		ObjectMeta: metav1.ObjectMeta{Name: "lan"}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.128.0/17"}},
	}}
	for i := range nodes {
		n := objects.Node(i)
		n.Labels = map[string]string{"kubernetes.io/os": "linux", "topology.kubernetes.io/zone": fmt.Sprintf("z%d", i%3)}
		at := netip.AddrFrom4([4]byte{10, 0, byte(1 + i>>8), byte(i)})
		n.Status.Addresses[0].Address = at.String()
		link := announce.Interface{Name: "eth0", MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255), Prefixes: []netip.Prefix{netip.PrefixFrom(at, 16)}, Up: true}
		s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Status: v1alpha1.SpeakerStatusStatus{
			Interfaces: []v1alpha1.SpeakerInterface{{Name: link.Name, MAC: link.MAC, Prefixes: []string{link.Prefixes[0].String()}, Up: true}},
			Members:    v1alpha1.SpeakerMembers{Alive: 1},
		}}
		all = append(all, n, s)
		w.Members.Alive[n.Name] = struct{}{}
		w.Members.Facts[n.Name] = announce.Facts{Interfaces: []announce.Interface{link}}
		if i == 1 {
			w.Link.Interfaces = []announce.Interface{link}
		}
	}
	for i := range services {
		a := netip.AddrFrom4([4]byte{10, 0, byte(128 + i>>8), byte(i)})
		svc := objects.Service(fmt.Sprintf("s%d", i), a.String())
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		owner, other := fmt.Sprintf("n%d", 2*i%nodes), fmt.Sprintf("n%d", (2*i+1)%nodes)
		all = append(all, svc, endpointsOf(svc.Name, owner, other))
		w.Members.Claims[a] = announce.Claim{Epoch: 1, Node: owner}
	}
	w.Cluster = snapshot.Of(all...)
	return w
}

// endpointsOf is the EndpointSlice of a Service with one on each of nodes.
func endpointsOf(service string, nodes ...string) *discoveryv1.EndpointSlice {
	s := objects.Endpoints(nodes...)
	s.Name, s.Labels = service+"-1", map[string]string{discoveryv1.LabelServiceName: service}
	return s
}

// BenchmarkStep is what one node of a large fleet does when an endpoint comes to
// another that had none, which changes who may serve an address, and nothing else.
func BenchmarkStep(b *testing.B) {
	for _, size := range []struct{ nodes, services int }{{100, 100}, {5000, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", size.nodes, size.services), func(b *testing.B) {
			w, m := large(size.nodes, size.services), New(Options{Node: "n1"})
			more := w
			more.Cluster = w.Cluster.With(endpointsOf("s7", "n14", "n15", "n16"))
			worlds, now := []World{w, more}, began()
			m.Step(now, w)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now = now.Add(time.Second)
				m.Step(now, worlds[i%2])
			}
		})
	}
}
