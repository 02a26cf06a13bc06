package command

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"quayside.io/cluster"
	"quayside.io/test/chart"
)

// Whoever is refused is told of a role that the chart makes, whatever it calls its objects.
func TestTheRoleOfViewersIsThatOfTheChart(t *testing.T) {
	said := remedy(fmt.Errorf("asked: %w", cluster.ErrDenied), "edge")
	for values, as := range map[string]string{"": "quayside-viewer (or ", "harbour": "or NAME-viewer, if fullnameOverride"} {
		given := map[string]any{}
		if values != "" {
			given["fullnameOverride"] = values
		}
		_, objects, err := chart.Render("quayside", "edge", given)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range objects {
			if o.GroupVersionKind() == rbacv1.SchemeGroupVersion.WithKind("ClusterRole") && strings.HasSuffix(o.GetName(), "-viewer") {
				names = append(names, o.GetName())
			}
		}
		if want := cmp.Or(values, "quayside") + "-viewer"; len(names) != 1 || names[0] != want || !strings.Contains(said, as) {
			t.Errorf("with fullnameOverride %q the chart has %q, and who is refused reads %q", values, names, said)
		}
	}
}
