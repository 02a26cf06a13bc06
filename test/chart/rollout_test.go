package chart

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A fleet of any size is through in some twenty steps, and a small one goes node by node.
func TestAFleetRollsOutInTwentySteps(t *testing.T) {
	sets := 0
	for _, o := range rendered(t, values(t, `{proxy: {kind: DaemonSet}}`)) {
		d, ok := o.(*appsv1.DaemonSet)
		if !ok {
			continue
		}
		sets++
		for nodes, want := range map[int]int{1: 1, 3: 1, 20: 1, 21: 2, 1000: 50, 5000: 250} {
			// As the controller of DaemonSets reads it.
			got, err := intstr.GetScaledValueFromIntOrPercent(d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, nodes, true)
			if err != nil || got != want {
				t.Errorf("%s replaces %d of %d at a time (%v), want %d", d.Name, got, nodes, err, want)
			}
		}
	}
	if sets != 2 {
		t.Errorf("%d DaemonSets", sets)
	}
}

// TestHostPortsRollOut: on a node that has a proxy there is no room for another with the
// same ports, so an update that waits for a new pod before it ends an old one never ends.
func TestHostPortsRollOut(t *testing.T) {
	for text, surges := range map[string]bool{
		``: true,
		`{proxy: {hostPorts: {http: 80, https: 443}}}`:  false,
		`{proxy: {hostPorts: {https: 443}}}`:            false,
		`{proxy: {hostNetwork: {enabled: true}}}`:       false,
		`{proxy: {hostPorts: {http: 80}, replicas: 1}}`: false,
	} {
		if got := workloads(t, text)["proxy"].Surges; got != surges {
			t.Errorf("%s: waits for a new pod first: %v, want %v", text, got, surges)
		}
	}
}
