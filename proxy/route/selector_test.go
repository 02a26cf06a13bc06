package route_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// TestNamespacesBySelector goes step by step: nothing but Namespaces changes, and
// their Ingresses come and go with the label.
func TestNamespacesBySelector(t *testing.T) {
	own, other := plainIngress("web", "a.example.com", "s", "/"), plainIngress("web", "b.example.com", "s", "/")
	other.Namespace = "m"
	c := snapshot.Of(plainService("s"), own, other)
	selector, err := labels.Parse("edge=public,!paused")
	if err != nil {
		t.Fatal(err)
	}
	options := route.Options{Classes: ingressclass.Rules{Namespaces: selector}}
	namespace := func(name string, set map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}
	}
	public, paused := map[string]string{"edge": "public", "team": "x"}, map[string]string{"edge": "public", "paused": ""}
	table := route.Compile(c, nil, options)
	for i, step := range []struct {
		is   *corev1.Namespace // nil: namespace n is gone
		a, b bool              // hosts that are served
	}{
		{namespace("n", nil), false, false},
		{namespace("n", public), true, false},
		{namespace("m", public), true, true},
		{namespace("n", paused), false, true},
		{namespace("n", public), true, true},
		{namespace("n", map[string]string{"edge": "private"}), false, true},
		{namespace("m", nil), false, false},
		{namespace("n", public), true, false},
		{nil, false, false},
	} {
		before, was := table.Version, match(table, "a.example.com", "/") != nil
		if step.is != nil {
			c = c.With(step.is)
		} else {
			c = c.Without(snapshot.Namespace, snapshot.Key{Name: "n"})
		}
		table = route.Compile(c, table, options)
		a, b := match(table, "a.example.com", "/") != nil, match(table, "b.example.com", "/") != nil
		if a != step.a || b != step.b {
			t.Errorf("step %d: a is served %v, want %v; b %v, want %v", i, a, step.a, b, step.b)
		}
		if a != was && table.Version == before {
			t.Errorf("step %d: the answers changed, but not the version", i)
		}
		if classes := table.Classes(); classes.Elsewhere(own) == a || classes.Elsewhere(other) == b {
			t.Errorf("step %d: Elsewhere says otherwise than the Table", i)
		}
	}
	if got, want := table.Classes().Why("n"), "namespace n does not match --watch-namespace-selector, edge=public,!paused"; got != want {
		t.Errorf("why: %q, want %q", got, want)
	}
}
