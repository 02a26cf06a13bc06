package announce

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// health is a Service of policy Local with a healthCheckNodePort, and n1 whose
// kube-proxy is asked there.
type health struct {
	t        *testing.T
	policy   corev1.ServiceExternalTrafficPolicy
	port     int32
	endpoint string               // of n1: ready, ending
	said     map[string]time.Time // since when kube-proxy has said none, by where
	here     time.Time            // since when n1 has had the endpoint; zero: since ever
}

func (h *health) plan(now time.Time) *Plan {
	h.t.Helper()
	svc := balancer("web", addrAt(100))
	svc.Spec.ExternalTrafficPolicy, svc.Spec.HealthCheckNodePort = h.policy, h.port
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}}
	slice.AddressType, slice.Ports = discoveryv1.AddressTypeIPv4, offered()
	node, ready, yes := "n1", h.endpoint == "ready", true
	slice.Endpoints = []discoveryv1.Endpoint{{NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &yes, Terminating: &yes}}}
	n1 := readyNode("n1", "")
	n1.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "203.0.113.1"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"}, {Type: corev1.NodeInternalIP, Address: "10.9.0.1"}}
	c := snapshot.Of(n1, readyNode("n2", ""), lanPool("10.0.0.0/24"), &v1alpha1.BGPAdvertisement{}, bgpPeer("r1", "10.0.0.254"), svc, slice)
	v := View{Unserved: map[netip.AddrPort]time.Time{}}
	if !h.here.IsZero() {
		v.Since = map[netip.Addr]time.Time{addrAt(100): h.here}
	}
	for at, since := range h.said {
		v.Unserved[netip.MustParseAddrPort(at)] = since
	}
	return Compile(c, "n1", v, now, Options{})
}

// What kube-proxy says counts once it has said so for as long as it may take it to
// hear of an endpoint, and only where there is a ready one.
func TestKubeProxyWithoutTheEndpointIsNotAnnounced(t *testing.T) {
	const at, other = "10.9.0.1:30000", "10.9.0.1:30001"
	now := epoch0()
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	local, cluster := corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster
	for _, c := range []struct {
		name string
		health
		asked, announced bool
		wake             time.Duration
	}{
		{"it says nothing", health{policy: local, port: 30000, endpoint: "ready"}, true, true, 0},
		{"it has said none for long", health{policy: local, port: 30000, endpoint: "ready", said: map[string]time.Time{at: before(Settling)}}, true, false, 0},
		{"it says none, and may not have heard yet", health{policy: local, port: 30000, endpoint: "ready", said: map[string]time.Time{at: before(Settling / 3)}}, true, true, Settling * 2 / 3},
		{"it says none of an endpoint that it has had time to hear of", health{policy: local, port: 30000, endpoint: "ready", here: before(Settling), said: map[string]time.Time{at: before(Settling / 3)}}, true, false, 0},
		{"it says none elsewhere", health{policy: local, port: 30000, endpoint: "ready", said: map[string]time.Time{other: before(time.Hour)}}, true, true, 0},
		{"one that ends is none for it, and it still forwards", health{policy: local, port: 30000, endpoint: "ending", said: map[string]time.Time{at: before(time.Hour)}}, false, true, 0},
		{"policy Cluster", health{policy: cluster, port: 30000, endpoint: "ready", said: map[string]time.Time{at: before(time.Hour)}}, false, true, 0},
		{"without a port", health{policy: local, endpoint: "ready", said: map[string]time.Time{at: before(time.Hour)}}, false, true, 0},
	} {
		c.t = t
		p := c.plan(now)
		if announced := len(p.BGP.Sessions[0].Routes) > 0; announced != c.announced {
			t.Errorf("%s: announced: %v", c.name, announced)
		}
		if told := len(p.LocalProblems()) == 1; told == c.announced {
			t.Errorf("%s: told: %v", c.name, p.Problems)
		}
		if key, asked := p.Checks[netip.MustParseAddrPort(at)]; asked != c.asked || asked && key.String() != "default/web" || len(p.Checks) > 1 {
			t.Errorf("%s: asks %v", c.name, p.Checks)
		}
		if c.wake > 0 && p.Wake(now) != c.wake {
			t.Errorf("%s: looks again after %v, want %v", c.name, p.Wake(now), c.wake)
		}
	}
}
