package assign_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// Which Ingresses are written is the same whether all are looked at or, with a memory,
// those that changed: over any changes of Ingresses, classes, the labels of namespaces
// and of what is wanted, with writes that are lost.
func TestIngressesThatChangedAreAllThatIsLookedAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, o := snapshot.Of(), options()
		var prev *assign.Plan
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			c = changeIngresses(t, c, &o)
			fresh := assign.Compile(c, nil, nil, noon(), o)
			plan := assign.Compile(c, prev, nil, noon(), o)
			if diff := samePlan(fresh, plan); diff != "" {
				t.Fatalf("memory changes the plan: %s", diff)
			}
			for _, u := range plan.Updates {
				if rapid.Bool().Draw(t, "lands") {
					c = c.With(u.Object())
				}
			}
			prev = plan
		}
	})
}

// changeIngresses changes one thing that decides what is written to Ingresses.
func changeIngresses(t *rapid.T, c *snapshot.Cluster, o *assign.Options) *snapshot.Cluster {
	space := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace")
	name := rapid.SampledFrom([]string{"quayside", "nginx"}).Draw(t, "name")
	address := netip.MustParseAddr(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).Draw(t, "address"))
	switch rapid.SampledFrom([]string{"ingress", "ingress", "ingress", "deleted", "class", "no class", "labels", "publish", "selector", "adopt"}).Draw(t, "what") {
	case "ingress":
		in := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "which")}}
		if rapid.Bool().Draw(t, "has class") {
			in.Spec.IngressClassName = &name
		}
		if rapid.Bool().Draw(t, "has status") {
			in.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: address.String()}}
		}
		return c.With(in)
	case "deleted":
		return c.Without(snapshot.Ingress, snapshot.Key{Namespace: space, Name: "x"})
	case "class":
		class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		class.Spec.Controller = rapid.SampledFrom([]string{ingressclass.Controller, ingressclass.NginxController}).Draw(t, "controller")
		if rapid.Bool().Draw(t, "default") {
			class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		}
		return c.With(class)
	case "no class":
		return c.Without(snapshot.IngressClass, snapshot.Key{Name: name})
	case "labels":
		return c.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space, Labels: map[string]string{"served": rapid.SampledFrom([]string{"yes", "no"}).Draw(t, "served")}}})
	case "publish":
		o.PublishAddresses = []netip.Addr{address}
		if rapid.Bool().Draw(t, "nothing") {
			o.PublishAddresses = nil
		}
	case "selector":
		o.Classes.Namespaces = labels.SelectorFromSet(labels.Set{"served": "yes"})
		if rapid.Bool().Draw(t, "all namespaces") {
			o.Classes.Namespaces = nil
		}
	case "adopt":
		o.Classes.Adopt = []string{ingressclass.NginxController}
		if rapid.Bool().Draw(t, "nobody") {
			o.Classes.Adopt = nil
		}
	}
	return c
}
