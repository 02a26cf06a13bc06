package assign_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// The worlds of the property tests are small, so that things collide.

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func drawLabels(t *rapid.T) map[string]string {
	return rapid.SampledFrom([]map[string]string{nil, {"app": "web"}, {"app": "db"}}).Draw(t, "labels")
}

func drawSelector(t *rapid.T) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(t, "selects")}}
}

func drawPool(t *rapid.T) *v1alpha1.IPAddressPool {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pool")
	p := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour))}}
	p.Spec.Addresses = rapid.SliceOfN(rapid.SampledFrom([]string{
		"10.0.0.1-10.0.0.3", "10.0.0.2-10.0.0.5", "10.0.1.0/31", "10.0.0.254-10.0.1.0", "fd00::1-fd00::3", "fd00::8/126", "nonsense",
	}), 1, 3).Draw(t, "addresses")
	p.Spec.Reserved = rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.2", "fd00::2", "10.0.1.0/31"}), 0, 1).Draw(t, "reserved")
	p.Spec.AvoidBuggyIPs = rapid.Bool().Draw(t, "avoidBuggyIPs")
	p.Spec.Drain = rapid.IntRange(0, 5).Draw(t, "drain") == 0
	if rapid.IntRange(0, 4).Draw(t, "autoAssign") == 0 {
		p.Spec.AutoAssign = new(bool)
	}
	if rapid.IntRange(0, 2).Draw(t, "reuseAfter") == 0 {
		p.Spec.ReuseAfter = &metav1.Duration{Duration: 10 * time.Second}
	}
	if rapid.IntRange(0, 2).Draw(t, "allocation") == 0 {
		p.Spec.AllocateTo = &v1alpha1.ServiceAllocation{
			Priority:           rapid.IntRange(0, 2).Draw(t, "priority"),
			Namespaces:         rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y"}), 0, 1).Draw(t, "namespaces"),
			NamespaceSelectors: rapid.SliceOfN(rapid.Custom(drawSelector), 0, 1).Draw(t, "namespaceSelectors"),
			ServiceSelectors:   rapid.SliceOfN(rapid.Custom(drawSelector), 0, 1).Draw(t, "serviceSelectors"),
		}
	}
	return p
}

// serviceKeys are all the Services there can be.
func serviceKeys() []snapshot.Key {
	return []snapshot.Key{{Namespace: "x", Name: "s0"}, {Namespace: "x", Name: "s1"}, {Namespace: "x", Name: "s2"},
		{Namespace: "y", Name: "s3"}, {Namespace: "y", Name: "s4"}, {Namespace: "y", Name: "s5"}, {Namespace: "y", Name: "s6"}}
}

// drawSpec gives a Service a new spec and new annotations, but leaves our
// output annotation alone.
func drawSpec(t *rapid.T, s *corev1.Service) {
	s.Labels = drawLabels(t)
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}
	if rapid.IntRange(0, 7).Draw(t, "type") == 0 {
		s.Spec.Type = corev1.ServiceTypeClusterIP
	}
	if rapid.IntRange(0, 7).Draw(t, "class") == 0 {
		class := "example.com/other"
		s.Spec.LoadBalancerClass = &class
	}
	policy := rapid.SampledFrom([]corev1.IPFamilyPolicy{"", "", corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack}).Draw(t, "policy")
	s.Spec.IPFamilies = rapid.SampledFrom([][]corev1.IPFamily{{corev1.IPv4Protocol}, {corev1.IPv6Protocol}}).Draw(t, "families")
	if policy != "" {
		s.Spec.IPFamilyPolicy = &policy
		if policy != corev1.IPFamilyPolicySingleStack {
			other := map[corev1.IPFamily]corev1.IPFamily{corev1.IPv4Protocol: corev1.IPv6Protocol, corev1.IPv6Protocol: corev1.IPv4Protocol}
			s.Spec.IPFamilies = []corev1.IPFamily{s.Spec.IPFamilies[0], other[s.Spec.IPFamilies[0]]}
		}
	}
	s.Spec.Ports = []corev1.ServicePort{{Port: rapid.Int32Range(80, 82).Draw(t, "port")}}
	if rapid.IntRange(0, 3).Draw(t, "local") == 0 {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	if rapid.IntRange(0, 3).Draw(t, "external") == 0 {
		s.Spec.ExternalIPs = rapid.SampledFrom([][]string{{"10.0.0.1"}, {"10.0.0.3", "fd00::2"}, {"10.0.0.2", "10.9.9.9"}, {"fd00::1"}}).Draw(t, "externalIPs")
	}
	given, was := s.Annotations[loadbalancer.AnnotationGiven]
	s.Annotations = map[string]string{}
	if was {
		s.Annotations[loadbalancer.AnnotationGiven] = given
	}
	for _, a := range []struct {
		name   string
		values []string
	}{
		{loadbalancer.AnnotationSharingKey, []string{"", "", "k", "k"}},
		{loadbalancer.AnnotationSharingNamespaces, []string{"", "*", "x"}},
		{"metallb.io/address-pool", []string{"", "", "", "", "a", "b"}},
		{loadbalancer.AnnotationAddresses, []string{"", "", "", "", "", "10.0.0.2", "10.0.0.3,10.0.0.4", "fd00::1", "10.0.0.1,fd00::2", "10.9.9.9", "oops"}},
	} {
		if v := rapid.SampledFrom(a.values).Draw(t, a.name); v != "" {
			s.Annotations[a.name] = v
		}
	}
}

// drawChange is one thing that people do to the cluster.
func drawChange(t *rapid.T, c *snapshot.Cluster) *snapshot.Cluster {
	switch rapid.IntRange(0, 10).Draw(t, "change") {
	case 0, 1:
		return c.With(drawPool(t))
	case 2:
		return c.Without(snapshot.IPAddressPool, snapshot.Key{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "gone pool")})
	case 3:
		return c.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace"), Labels: drawLabels(t)}})
	case 4:
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: rapid.SampledFrom([]string{"10.9.0.1", "10.0.0.1", "fd00::1"}).Draw(t, "node address")}}
		return c.With(n)
	case 5:
		n := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: rapid.SampledFrom([]string{"node", "gone"}).Draw(t, "speaker")}}
		for _, s := range c.Services.Sorted() { // as the speaker saw it a moment ago
			for _, a := range statusOf(s) {
				n.Status.Announcing = append(n.Status.Announcing, v1alpha1.Announcing{Address: a.String()})
			}
		}
		return c.With(n)
	case 6:
		return c.Without(snapshot.Service, rapid.SampledFrom(serviceKeys()).Draw(t, "gone service"))
	}
	key := rapid.SampledFrom(serviceKeys()).Draw(t, "service")
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		CreationTimestamp: metav1.NewTime(noon().Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second)),
	}}
	if old, ok := c.Services.Get(key); ok {
		s = old.DeepCopy()
	} else if rapid.IntRange(0, 3).Draw(t, "from elsewhere") == 0 {
		s.Status.LoadBalancer.Ingress = rapid.SampledFrom([][]corev1.LoadBalancerIngress{
			{{IP: "10.0.0.2"}}, {{IP: "10.0.0.3"}, {IP: "fd00::3"}}, {{IP: "192.0.2.1"}}, {{Hostname: "lb.example.com"}}, {{IP: "10.0.0.1"}},
		}).Draw(t, "status")
	}
	drawSpec(t, s)
	return c.With(s)
}

// apply carries a plan out.
func apply(c *snapshot.Cluster, p *assign.Plan) *snapshot.Cluster {
	for _, u := range p.Updates {
		c = c.With(u.Object())
	}
	return c
}

// A spelled Update is what the controller makes of it.
type spelled struct {
	Object snapshot.Object
	Event  assign.Event
}

func spellOut(updates []assign.Update) (list []spelled) {
	for _, u := range updates {
		e, _ := u.Event()
		list = append(list, spelled{u.Object(), e})
	}
	return list
}

// samePlan returns how two plans differ, or "".
func samePlan(a, b *assign.Plan) string {
	return cmp.Diff(spellOut(a.Updates), spellOut(b.Updates), cmpopts.EquateEmpty()) +
		cmp.Diff(a, b, cmpopts.IgnoreFields(assign.Plan{}, "Updates"), cmpopts.IgnoreUnexported(assign.Plan{}),
			cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmpopts.EquateEmpty())
}

// settle applies plans until nothing changes.
func settle(t interface{ Fatalf(string, ...any) }, c *snapshot.Cluster, p *assign.Plan, now time.Time, opts assign.Options) (*snapshot.Cluster, *assign.Plan) {
	for range 6 {
		p = assign.Compile(c, p, nil, now, opts)
		if len(p.Updates) == 0 {
			return c, p
		}
		c = apply(c, p)
	}
	t.Fatalf("six plans, each applied, are no fixed point; the last: %s", fmt.Sprint(spellOut(p.Updates)))
	return c, p
}
