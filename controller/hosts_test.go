package controller

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// proxiesOn are the endpoints of the proxies' Service: one on each node, ready unless the
// node's name begins with an exclamation mark.
func proxiesOn(c *snapshot.Cluster, nodes ...string) *snapshot.Cluster {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "edge", Name: "proxies-1", Labels: map[string]string{discoveryv1.LabelServiceName: "proxies"},
	}}
	for _, node := range nodes {
		name, ready := node, node[0] != '!'
		if !ready {
			name = node[1:]
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &name, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	return c.With(slice)
}

func node(name string, addresses ...corev1.NodeAddress) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}
}

// Statuses name the nodes whose proxies are ready, and for a minute those where one was,
// so that a rollout writes nothing. With none at all they stay.
func TestNodesOfProxiesArePublished(t *testing.T) {
	c := snapshot.Of(
		node("a", corev1.NodeAddress{Type: corev1.NodeHostName, Address: "a"}, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "2001:db8::1"}),
		node("b", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "203.0.113.2"}),
		node("c", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.3"}),
	)
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	h := hosts{service: snapshot.Key{Namespace: "edge", Name: "proxies"}}
	for _, step := range []struct {
		after   time.Duration
		proxies []string
		want    string
		leaves  time.Duration // when the next one does; 0: none
	}{
		{0, nil, "[]", 0},
		{1 * time.Second, []string{"!a"}, "[]", 0},
		{2 * time.Second, []string{"a", "b", "gone"}, "[10.0.0.1 203.0.113.2 2001:db8::1]", 0},
		{time.Hour, []string{"!a", "b", "b"}, "[10.0.0.1 203.0.113.2 2001:db8::1]", time.Hour + hostRest},
		{time.Hour + 10*time.Second, []string{"a", "c"}, "[10.0.0.1 10.0.0.3 203.0.113.2 2001:db8::1]", time.Hour + hostRest},
		{time.Hour + 70*time.Second - 1, []string{"a", "c"}, "[10.0.0.1 10.0.0.3 203.0.113.2 2001:db8::1]", time.Hour + 70*time.Second},
		{time.Hour + 70*time.Second, []string{"a", "c"}, "[10.0.0.1 10.0.0.3 2001:db8::1]", 0},
		{2 * time.Hour, []string{"!a", "!c"}, "[10.0.0.1 10.0.0.3 2001:db8::1]", 0},
		{3 * time.Hour, nil, "[10.0.0.1 10.0.0.3 2001:db8::1]", 0},
		{4 * time.Hour, []string{"b"}, "[203.0.113.2]", 0},
	} {
		c = proxiesOn(c, step.proxies...)
		o, leaves := h.publish(assign.Options{PublishAddresses: []netip.Addr{netip.IPv4Unspecified()}}, c, noon.Add(step.after))
		if got := fmt.Sprint(o.PublishAddresses); got != step.want {
			t.Errorf("after %v with proxies on %v: %s, want %s", step.after, step.proxies, got, step.want)
		}
		other := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "other-1", Labels: map[string]string{discoveryv1.LabelServiceName: "other"}}}
		if h.changed(c.With(other)) || !h.changed(proxiesOn(c, "d")) {
			t.Errorf("after %v: endpoints of other Services are %v, and those of this one %v", step.after, h.changed(c.With(other)), h.changed(proxiesOn(c, "d")))
		}
		want := time.Time{}
		if step.leaves != 0 {
			want = noon.Add(step.leaves)
		}
		if !leaves.Equal(want) {
			t.Errorf("after %v with proxies on %v: the next leaves at %v, want %v", step.after, step.proxies, leaves, want)
		}
	}
}
