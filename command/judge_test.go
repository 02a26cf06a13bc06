package command

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"quayside.io/cluster"
)

// Whoever is refused is told of a role that the chart makes, whatever it calls its objects.
func TestTheRoleOfViewersIsThatOfTheChart(t *testing.T) {
	said := remedy(fmt.Errorf("asked: %w", cluster.ErrDenied), "edge")
	for _, c := range []struct{ values, name, as string }{
		{"{}", "quayside", "quayside-viewer (or "},
		{"fullnameOverride: harbour", "harbour", "or NAME-viewer, if fullnameOverride"},
	} {
		var names []string
		for _, o := range rendered(t, c.values) {
			if o.GroupVersionKind() == rbacv1.SchemeGroupVersion.WithKind("ClusterRole") && strings.HasSuffix(o.GetName(), "-viewer") {
				names = append(names, o.GetName())
			}
		}
		if want := c.name + "-viewer"; len(names) != 1 || names[0] != want || !strings.Contains(said, c.as) {
			t.Errorf("with %s the chart has %q, and who is refused reads %q", c.values, names, said)
		}
	}
}
