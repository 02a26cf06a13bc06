package loadbalancer_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/loadbalancer"
)

// genService draws a Service from few words, so that two often agree.
func genService(t *rapid.T) *corev1.Service {
	word := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	for _, key := range []string{loadbalancer.AnnotationSharingKey, "metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip"} {
		if rapid.IntRange(0, 2).Draw(t, "is there") == 0 {
			svc.Annotations[key] = word("key", "", "k", "k", "l")
		}
	}
	if rapid.Bool().Draw(t, "local") {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	for range rapid.IntRange(0, 2).Draw(t, "labels") {
		svc.Spec.Selector = map[string]string{word("label", "app", "tier"): word("value", "", "a", "b")}
	}
	return svc
}

// TestAlikeIsItsTwin compares a glance at two Services with what lbpool says of
// their holders: a speaker must announce for both what the controller gave both.
func TestAlikeIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genService(t), genService(t)
		one, two := loadbalancer.HolderOf(a), loadbalancer.HolderOf(b)
		if why := one.Clash(&two); loadbalancer.Alike(a, b) != (why == "") {
			t.Fatalf("%v and %v are alike: %v; their holders: %q", a, b, loadbalancer.Alike(a, b), why)
		}
	})
}

func TestOurAnnotationComesFirst(t *testing.T) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	if v, there := loadbalancer.Annotation(svc, loadbalancer.AnnotationPool); v != "" || there {
		t.Errorf("%q, %v without any", v, there)
	}
	for _, c := range []struct{ key, value string }{
		{"metallb.universe.tf/address-pool", "old"},
		{"metallb.io/address-pool", "new"},
		{loadbalancer.AnnotationPool, ""}, // whoever wrote that wants no pool
	} {
		svc.Annotations[c.key] = c.value
		if v, there := loadbalancer.Annotation(svc, loadbalancer.AnnotationPool); v != c.value || !there {
			t.Errorf("%q, %v with %s, want %q", v, there, c.key, c.value)
		}
	}
}

// Who may write a Service writes as long a list as the API server takes.
func TestSharingNamespacesAreBounded(t *testing.T) {
	for list, want := range map[string]int{
		"":                          0,
		" a,, a ,b,":                2,
		strings.Repeat("a,", 1<<17): 1,
		manyNames(1 << 16):          loadbalancer.MaxSharingNamespaces,
	} {
		holder := loadbalancer.HolderOf(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			loadbalancer.AnnotationSharingKey: "k", loadbalancer.AnnotationSharingNamespaces: list,
		}}})
		if len(holder.Admits) != want || cap(holder.Admits) > 2*want {
			t.Errorf("%.20q…: %d namespaces in room for %d, want %d", list, len(holder.Admits), cap(holder.Admits), want)
		}
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%d,", i)
	}
	return b.String()
}
