package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

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
			moved, err := migrate.ReadChart(name, theirs)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			var text bytes.Buffer
			if err := moved.WriteYAML(&text); err != nil {
				t.Fatal(err)
			}
			var ours map[string]any
			if err := yaml.Unmarshal(text.Bytes(), &ours); err != nil {
				t.Fatal(err)
			}
			if _, _, err := chart.Render("quayside", lab.SystemNamespace, ours); err != nil {
				t.Errorf("%s: %v\n%s", file, err, text.String())
			}
		}
		t.Logf("%s: %d files of values", name, len(tried)+1)
	}
}
