package assign_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// Services of one small pool ask for each other's addresses. Who loses one ends with all that it
// asks for, and those who could change places have done so, as far as nobody older waits.
func TestServicesChangePlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.0/29", "fd00::8/125"}}}
		before := snapshot.Of(pool).With(drawHolders(t)...)
		after := before
		var plan *assign.Plan
		for range 20 { // they move one by one
			plan = assign.Compile(after, plan, nil, noon(), options())
			after = apply(after, plan)
		}
		if len(plan.Updates) > 0 {
			t.Fatalf("it goes on and on: %+v", spellOut(plan.Updates))
		}
		for _, was := range before.Services.Sorted() {
			now, _ := after.Services.Get(snapshot.KeyOf(was))
			lost := slices.ContainsFunc(statusOf(was), func(a netip.Addr) bool { return !slices.Contains(statusOf(now), a) })
			if lost && !isServed(now) {
				t.Fatalf("%s asks for %v, had %v, and has %v\nbefore:%s\nafter:%s", was.Name, wanted(was), statusOf(was), statusOf(now), holdings(before), holdings(after))
			}
		}
		checkNobodyCouldChange(t, after)
	})
}

// drawHolders are Services most of which have addresses and ask for others.
func drawHolders(t *rapid.T) (list []snapshot.Object) {
	const addresses = 8 // of the pool; there may be two Services more
	places := rapid.Permutation(indexes(addresses+2)).Draw(t, "places")
	for i := range rapid.IntRange(2, 10).Draw(t, "services") {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("s%d", i), CreationTimestamp: metav1.NewTime(noon().Add(time.Duration(i) * time.Second)), Annotations: map[string]string{}}}
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: int32(80 + i)}}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}
		both := rapid.IntRange(0, 3).Draw(t, "both families") == 0
		if both {
			policy := rapid.SampledFrom([]corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack}).Draw(t, "policy")
			s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &policy, append(s.Spec.IPFamilies, corev1.IPv6Protocol)
		}
		at := places[i]
		has := at < addresses && rapid.IntRange(0, 7).Draw(t, "has one") > 0
		if key := rapid.SampledFrom([]string{"", "", "", "k"}).Draw(t, "key"); key != "" {
			s.Annotations[loadbalancer.AnnotationSharingKey] = key
			older := places[rapid.IntRange(0, i).Draw(t, "place")]
			if o := holderOf(list, older); has && older < addresses && (o == nil || o.Annotations[loadbalancer.AnnotationSharingKey] == key) {
				at = older
			}
		}
		if has {
			s.Annotations[loadbalancer.AnnotationGiven] = "a"
			for _, text := range addressesAt(at, both) {
				s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: text})
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "asks") > 0 {
			asked := addressesAt(rapid.IntRange(0, 8).Draw(t, "asks for"), both)
			s.Annotations[loadbalancer.AnnotationAddresses] = strings.Join(asked[:rapid.IntRange(1, len(asked)).Draw(t, "of its families")], ",")
		}
		list = append(list, s)
	}
	return list
}

// holdings are the Services for a person, the oldest first.
func holdings(c *snapshot.Cluster) (text string) {
	for _, s := range c.Services.Sorted() { // as they are named
		text += fmt.Sprintf("\n  %s %v: key %q, has %v and asks for %v", s.Name, s.Spec.IPFamilies, s.Annotations[loadbalancer.AnnotationSharingKey], statusOf(s), wanted(s))
	}
	return text
}

func holderOf(list []snapshot.Object, at int) *corev1.Service {
	for _, o := range list {
		if s, is := o.(*corev1.Service); is && slices.Contains(statusOf(s), netip.MustParseAddr(addressesAt(at, false)[0])) {
			return s
		}
	}
	return nil
}

func addressesAt(i int, both bool) []string {
	all := []string{fmt.Sprintf("10.0.0.%d", i), fmt.Sprintf("fd00::%x", 8+i)}
	if both {
		return all
	}
	return all[:1]
}

// wanted are the addresses that a Service asks for.
func wanted(s *corev1.Service) (list []netip.Addr) {
	for _, text := range asks(s) {
		list = append(list, loadbalancer.ParseAddresses(strings.Split(text, ","))...)
	}
	return list
}

// isServed reports whether a Service has all that it asks for.
func isServed(s *corev1.Service) bool {
	return !slices.ContainsFunc(wanted(s), func(a netip.Addr) bool { return !slices.Contains(statusOf(s), a) })
}

// checkNobodyCouldChange looks at each set of Services that wait for one address each, which one of
// them has for itself: there is none, unless somebody older waits for any of that, too.
func checkNobodyCouldChange(t *rapid.T, c *snapshot.Cluster) {
	all := c.Services.Sorted()
	slices.SortFunc(all, func(a, b *corev1.Service) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for set := 1; set < 1<<len(all); set++ {
		in := func(i int) bool { return set&(1<<i) != 0 }
		could := true
		for i, s := range all {
			want := wanted(s)
			if !in(i) {
				continue
			}
			if len(want) != 1 {
				could = false
				break
			}
			holders := 0
			for j, o := range all {
				has := slices.Contains(statusOf(o), want[0])
				switch {
				case has && (!in(j) || len(o.Spec.IPFamilies) > 1):
					could = false
				case has:
					holders++
				case j < i && !isServed(o) && slices.Contains(wanted(o), want[0]), j < i && len(statusOf(o)) < len(o.Spec.IPFamilies):
					could = false
				}
			}
			could = could && holders == 1 && !isServed(s)
		}
		if could {
			names := []string{}
			for i, s := range all {
				if in(i) {
					names = append(names, fmt.Sprintf("%s, which has %v and asks for %v", s.Name, statusOf(s), wanted(s)))
				}
			}
			t.Fatalf("they could change places: %s", strings.Join(names, "; "))
		}
	}
}
