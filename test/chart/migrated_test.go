package chart

import (
	"os"
	"testing"
)

// TestMigratedValues: what quayside migrate values makes of others' values is taken by our
// chart, its schema included.
func TestMigratedValues(t *testing.T) {
	for _, chart := range []string{"ingress-nginx", "metallb"} {
		text, err := os.ReadFile("testdata/" + chart + ".values.out.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if all := workloads(t, string(text)); all["proxy"].Kind != map[string]string{"ingress-nginx": "DaemonSet", "metallb": "Deployment"}[chart] {
			t.Errorf("%s: the proxy is a %s", chart, all["proxy"].Kind)
		}
	}
}
