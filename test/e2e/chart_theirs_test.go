package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quayside.io/command/migrate"
	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// What `quayside migrate values` makes of the values that ingress-nginx and MetalLB ship, of which
// many files of values are copies, and of those with which ingress-nginx tries its chart, our chart
// takes.
func TestTakesValuesOfTheirCharts(t *testing.T) {
	beside(t)
	lab.Require(t) // not for its own sake: the charts are part of what is fetched to be built
	for _, name := range []string{migrate.IngressNginxChart, migrate.MetalLBChart} {
		folder, err := lab.ChartOf(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		tried, err := filepath.Glob(filepath.Join(folder, "ci", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(tried, filepath.Join(folder, "values.yaml")) {
			theirs, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renderMoved(name, theirs); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		t.Logf("%s: %d files of values", name, len(tried)+1)
	}
}

// renderMoved is what our chart makes of values of another, as `quayside migrate values` prints
// them.
func renderMoved(of string, theirs []byte) ([]*unstructured.Unstructured, error) {
	moved, err := migrate.ReadChart(of, theirs)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := moved.WriteYAML(&text); err != nil {
		return nil, err
	}
	var ours map[string]any
	if err := yaml.Unmarshal(text.Bytes(), &ours); err != nil {
		return nil, err
	}
	_, objects, err := chart.Render("quayside", lab.SystemNamespace, ours)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text.String())
	}
	return objects, nil
}
