package snapshot

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func endpointSlice(name, service string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service},
	}}
}

// The index by Service says what a scan of all slices would say, whatever is
// added, relabelled and removed.
func TestSlicesOfIsAScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Cluster{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint("slice", rapid.IntRange(0, 9).Draw(t, "slice"))
			service := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "service")
			if rapid.Bool().Draw(t, "put") {
				c = c.With(endpointSlice(name, service))
			} else {
				c = c.Without(EndpointSlice, Key{"ns", name})
			}
			for _, service := range []string{"a", "b"} {
				var want []*discoveryv1.EndpointSlice
				for _, s := range c.EndpointSlices.Sorted() {
					if s.Labels[discoveryv1.LabelServiceName] == service {
						want = append(want, s)
					}
				}
				if got := c.SlicesOf(Key{"ns", service}); !slices.Equal(got, want) {
					t.Fatalf("SlicesOf(%s) has %d slices, a scan finds %d", service, len(got), len(want))
				}
			}
		}
	})
}

func TestGenerationsCountPerKind(t *testing.T) {
	a := Of(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}})
	b := a.With(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	if b.Changed(a, Service, Ingress) {
		t.Error("a Node woke those who read Services and Ingresses")
	}
	if !b.Changed(a, Ingress, Node) || !a.Changed(nil, Ingress) {
		t.Error("a change was not told")
	}
	if c := b.Without(Service, Key{"ns", "web"}); !c.Changed(b, Service) || c.Services.Len() != 0 || b.Services.Len() != 1 {
		t.Error("a removal was not told, or reached back into the old snapshot")
	}
	if c := b.WithFaults([]Problem{{Reason: "Unreadable"}}); !c.Changed(b, Faults) || c.Changed(b, Service) || len(c.Faults) != 1 || c.IsStale() || len(b.Faults) > 0 {
		t.Errorf("a fault was not told, or too much: %v", c.Faults)
	}
	if c := b.WithFaults([]Problem{{Reason: "Unreadable"}, {Reason: Unreachable}}); !c.IsStale() || c.WithFaults(nil).IsStale() {
		t.Error("whether the API server is reached is not known")
	}
	others := Of(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}).Nodes
	if c := b.WithNodes(others, 77); c.Generation(Node) != 77 || c.Nodes.Len() != 2 || b.Nodes.Len() != 1 || !c.Changed(b, Node) || c.Changed(b, Service) {
		t.Errorf("%d Nodes of others in generation %d", c.Nodes.Len(), c.Generation(Node))
	}
}

func TestEveryKindHasAPlace(t *testing.T) {
	for k := range numKinds {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an object without a place was accepted in silence")
		}
	}()
	Of(&corev1.Pod{})
}
