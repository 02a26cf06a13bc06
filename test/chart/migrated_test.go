package chart

import (
	"os"
	"testing"
)

// TestMigratedValues: what quayside migrate values makes of ingress-nginx's values is taken
// by our chart, its schema included.
func TestMigratedValues(t *testing.T) {
	text, err := os.ReadFile("testdata/ingress-nginx.values.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if kind := workloads(t, string(text))["proxy"].Kind; kind != "DaemonSet" {
		t.Errorf("the proxy is a %s", kind)
	}
}
