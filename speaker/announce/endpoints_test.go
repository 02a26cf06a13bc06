package announce

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/snapshot"
)

// A node whose pod ends does not serve by an address that another pod has by now, on
// whichever node that is and whether it is ready yet.
func TestAddressOfAPodThatEndsIsAnothers(t *testing.T) {
	no, yes := new(false), new(true)
	for _, c := range []struct {
		name string
		next discoveryv1.EndpointConditions
		at   string
		want places
	}{
		{"ready", discoveryv1.EndpointConditions{}, "10.1.0.1", places{local: []int{1}}},
		{"starting", discoveryv1.EndpointConditions{Ready: no}, "10.1.0.1", places{local: []int{}}},
		{"starting elsewhere", discoveryv1.EndpointConditions{Ready: no}, "10.1.0.2", places{local: []int{0}, ending: []int{0}}},
		{"ending, too", discoveryv1.EndpointConditions{Ready: no, Terminating: yes}, "10.1.0.1", places{local: []int{0, 1}, ending: []int{0, 1}}},
		{"ended", discoveryv1.EndpointConditions{Ready: no, Serving: no, Terminating: yes}, "10.1.0.1", places{local: []int{0}, ending: []int{0}}},
	} {
		svc := sharer("a", 80)
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		old, next := endpointsOf("a", discoveryv1.AddressTypeIPv4, "n1"), endpointsOf("a", discoveryv1.AddressTypeIPv4, "n2")
		old.Endpoints[0].Addresses, old.Endpoints[0].Conditions = []string{"10.1.0.1"}, discoveryv1.EndpointConditions{Ready: no, Terminating: yes}
		next.Endpoints[0].Addresses, next.Endpoints[0].Conditions = []string{c.at}, c.next
		got := placesOf(snapshot.Of(svc, old, next), question{snapshot.KeyOf(svc), false}, map[string]int{"n1": 0, "n2": 1})
		if !slices.Equal(got.local, c.want.local) || !slices.Equal(got.ending, c.want.ending) {
			t.Errorf("%s: served at %v, ending at %v; want %v, %v", c.name, got.local, got.ending, c.want.local, c.want.ending)
		}
	}
}

// offered are the ports of pods that have the one of their Service, which has no name.
func offered() []discoveryv1.EndpointPort {
	return []discoveryv1.EndpointPort{{Port: new(int32(8080))}}
}

// A node serves nothing whose pods have none of the ports of the Service, as where a named
// targetPort is missing: kube-proxy drops what comes there.
func TestPodsWithoutThePortServeNothing(t *testing.T) {
	svc := sharer("a", 80)
	svc.Spec.Ports = []corev1.ServicePort{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
	tcp, udp, number := new(corev1.ProtocolTCP), new(corev1.ProtocolUDP), new(int32(8080))
	for _, c := range []struct {
		name  string
		ports []discoveryv1.EndpointPort
		serve bool
	}{
		{"both", []discoveryv1.EndpointPort{{Name: new("web"), Port: number, Protocol: tcp}, {Name: new("dns"), Port: number, Protocol: udp}}, true},
		{"one", []discoveryv1.EndpointPort{{Name: new("dns"), Port: number, Protocol: udp}}, true},
		{"none", nil, false},
		{"others", []discoveryv1.EndpointPort{{Name: new("old"), Port: number, Protocol: tcp}}, false},
		{"another protocol", []discoveryv1.EndpointPort{{Name: new("web"), Port: number, Protocol: udp}}, false},
		{"no number", []discoveryv1.EndpointPort{{Name: new("web"), Protocol: tcp}}, false},
		{"no protocol", []discoveryv1.EndpointPort{{Name: new("web"), Port: number}}, true},
	} {
		pods := endpointsOf("a", discoveryv1.AddressTypeIPv4, "n1")
		pods.Ports = c.ports
		for _, policy := range []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal} {
			svc.Spec.ExternalTrafficPolicy = policy
			got := placesOf(snapshot.Of(svc, pods), question{snapshot.KeyOf(svc), false}, map[string]int{"n1": 0})
			if serve := len(got.local) > 0 || policy == corev1.ServiceExternalTrafficPolicyCluster && !got.none; serve != c.serve {
				t.Errorf("%s, %s: serve: %v", c.name, policy, serve)
			}
		}
	}
}
