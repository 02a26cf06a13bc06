package route_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// TestNamespaceBeginsToTerminate goes step by step: nothing but the Namespace
// changes, and the younger Ingress has the path at once, and only as long.
func TestNamespaceBeginsToTerminate(t *testing.T) {
	older, younger := plainIngress("web", "a.example.com", "s", "/"), plainIngress("web", "a.example.com", "s", "/")
	younger.Namespace, younger.CreationTimestamp = "m", metav1.NewTime(now)
	service := plainService("s")
	service.Namespace = "m"
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	c := snapshot.Of(plainService("s"), service, older, younger, space)
	table := route.Compile(c, nil, route.Options{})
	deleted, phase := space.DeepCopy(), space.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: now.Add(time.Hour)}
	phase.Status.Phase = corev1.NamespaceTerminating
	for _, step := range []struct {
		is   *corev1.Namespace
		want string
	}{{space, "n"}, {deleted, "m"}, {space, "n"}, {phase, "m"}, {deleted, "m"}, {space, "n"}} {
		before := table.Version
		was := match(table, "a.example.com", "/").Owner.Namespace
		table = route.Compile(c.With(step.is), table, route.Options{})
		got := match(table, "a.example.com", "/").Owner.Namespace
		if got != step.want || (table.Version != before) != (got != was) {
			t.Errorf("%v: namespace %s answers, want %s; version %d after %d", step.is.Status, got, step.want, table.Version, before)
		}
	}
}
