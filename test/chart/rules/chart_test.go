package rules

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/relabel"
)

// root is the product's module.
const root = "../../.."

// object is as much of an object that the chart renders as is looked at here.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data map[string]string
	Spec json.RawMessage
}

// rendered is what the chart makes of some values.
func rendered(t *testing.T, values string) []object {
	t.Helper()
	c := exec.Command("go", "run", "./test/chart/show")
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	c.Stdin = strings.NewReader(values)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	var list struct{ Items []object }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// spec reads the spec of an object.
func spec[T any](t *testing.T, o object) (s T) {
	t.Helper()
	if err := json.Unmarshal(o.Spec, &s); err != nil {
		t.Fatalf("%s %s: %v", o.Kind, o.Metadata.Name, err)
	}
	return s
}

// selects reports whether labels have all that a selector asks for.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// workload is the spec of a Deployment or a DaemonSet.
type workload struct {
	Template struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Containers []struct {
				Name  string
				Ports []struct {
					Name          string
					ContainerPort int
				}
			}
		}
	}
}

type service struct{ Selector map[string]string }

// endpoint is what a monitor says about one port.
type endpoint struct {
	Port        string
	HonorLabels bool
	Relabelings []struct {
		SourceLabels                            []string
		TargetLabel, Replacement, Regex, Action string
	}
}

// monitor is the spec of a ServiceMonitor or a PodMonitor.
type monitor struct {
	Selector            struct{ MatchLabels map[string]string }
	NamespaceSelector   struct{ MatchNames []string }
	Endpoints           []endpoint
	PodMetricsEndpoints []endpoint
}

// relabelling is the endpoint's own, in the words of Prometheus.
func (e endpoint) relabelling(t *testing.T) (all []*relabel.Config) {
	t.Helper()
	for _, r := range e.Relabelings {
		c := relabel.DefaultRelabelConfig
		for _, name := range r.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, model(name))
		}
		if r.Regex != "" {
			c.Regex = relabel.MustNewRegexp(r.Regex)
		}
		if r.Action != "" {
			c.Action = relabel.Action(strings.ToLower(r.Action))
		}
		if r.Replacement != "" {
			c.Replacement = r.Replacement
		}
		c.TargetLabel = r.TargetLabel
		if err := c.Validate(names); err != nil {
			t.Fatal(err)
		}
		all = append(all, &c)
	}
	return all
}

// documented are the labels of the metrics in docs/metrics.md by name.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		name := strings.Trim(cells[0], "| `")
		all[name] = strings.FieldsFunc(cells[1], func(c rune) bool { return strings.ContainsRune("`, ", c) })
	}
	if len(all) < 60 || len(all["quayside_http_requests_total"]) != 4 {
		t.Fatalf("docs/metrics.md lists %d metrics: it was not read", len(all))
	}
	return all
}
