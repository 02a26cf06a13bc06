package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/loadbalancer"
)

func TestAddressesAreReadOnceAndPlain(t *testing.T) {
	spelled := []string{"10.0.0.9", "", "example.com", "::ffff:10.0.0.9", "fe80::1%eth0", "fe80::1", "2001:DB8::1"}
	want := []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("fe80::1"), netip.MustParseAddr("2001:db8::1")}
	for i := range 20 { // also beyond what is looked through one by one
		text := fmt.Sprintf("10.0.1.%d", i)
		spelled, want = append(spelled, text, text), append(want, netip.MustParseAddr(text))
	}
	svc := &corev1.Service{Spec: corev1.ServiceSpec{ExternalIPs: spelled}}
	for _, text := range spelled {
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: text})
	}
	if got := loadbalancer.Addresses(svc); !slices.Equal(got, want) {
		t.Errorf("in status: %v, want %v", got, want)
	}
	if got := loadbalancer.Listed(svc); !slices.Equal(got, want) {
		t.Errorf("in spec.externalIPs: %v, want %v", got, want)
	}
	if svc.Spec.ClusterIP = corev1.ClusterIPNone; loadbalancer.Listed(svc) != nil {
		t.Error("kube-proxy routes nothing to a Service without a cluster IP")
	}
}

func TestNodeAddressesAreOfTheTypesAskedFor(t *testing.T) {
	n := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n1"},
		{Type: corev1.NodeHostName, Address: "10.0.0.7"},
		{Type: corev1.NodeExternalIP, Address: "::ffff:192.0.2.1"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeInternalIP, Address: "fe80::1%eth0"},
	}}}
	for _, c := range []struct {
		types []corev1.NodeAddressType
		want  string
	}{
		{nil, "[10.0.0.7 192.0.2.1 10.0.0.1 fe80::1]"},
		{[]corev1.NodeAddressType{corev1.NodeInternalIP}, "[10.0.0.1 fe80::1]"},
		{[]corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP}, "[192.0.2.1 10.0.0.1 fe80::1]"},
		{[]corev1.NodeAddressType{corev1.NodeInternalDNS}, "[]"},
	} {
		if got := fmt.Sprint(slices.Collect(loadbalancer.NodeAddresses(n, c.types...))); got != c.want {
			t.Errorf("%v: %s, want %s", c.types, got, c.want)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		for a := range loadbalancer.NodeAddresses(n, corev1.NodeInternalIP) {
			if a.Is4() {
				break
			}
		}
	}); allocs != 0 {
		t.Errorf("%v allocations: there may be thousands of nodes", allocs)
	}
}

// TestAddressesAreCollectedOnce compares the collector with a naive one, below
// and above the number from which on it remembers in a map.
func TestAddressesAreCollectedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts []string
		var want []netip.Addr
		for range rapid.IntRange(0, 40).Draw(t, "entries") {
			text := rapid.SampledFrom([]string{"10.0.0.%d", "::ffff:10.0.0.%d", "fd00::%d", "lb-%d.example.com"}).Draw(t, "form")
			text = fmt.Sprintf(text, rapid.IntRange(0, 16).Draw(t, "number"))
			texts = append(texts, text)
			if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(want, a.Unmap()) {
				want = append(want, a.Unmap())
			}
		}
		if got := loadbalancer.ParseAddresses(texts); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
