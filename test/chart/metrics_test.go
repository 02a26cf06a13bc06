package chart

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// exported are the names of metrics as the code spells them: whole, or the first
// part of a name to which a package adds others of its strings.
type exported struct {
	whole map[string]bool
	parts map[string]map[string]bool // by the first part
	// undescribed are files whose collectors describe what they have to collect now, and
	// nothing else: docs/metrics.md is made before there is anything.
	undescribed map[string]bool
}

// metricsOfTheCode reads every package of the product.
func metricsOfTheCode(t *testing.T) exported {
	t.Helper()
	chart, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(chart, "..", "..")
	all := exported{map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}}
	for _, top := range []string{"cluster", "command", "controller", "proxy", "speaker"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			return all.read(path)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// read adds what one package exports.
func (e exported) read(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	texts, first := map[string]bool{}, []string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "DescribeByCollect" {
				e.undescribed[name] = true
			}
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value)
				texts[text] = true
				if strings.HasPrefix(text, "quayside_") && strings.HasSuffix(text, "_") {
					first = append(first, text)
				}
				if strings.HasPrefix(text, "quayside_") {
					e.whole[text] = true
				}
			}
			return true
		})
	}
	for _, prefix := range first {
		e.parts[prefix] = texts
	}
	return nil
}

// has reports that the code exports a metric.
func (e exported) has(name string) bool {
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		base, ok := strings.CutSuffix(name, suffix)
		if ok && e.whole[base] {
			return true
		}
	}
	for prefix, texts := range e.parts {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && (texts[rest] || texts[strings.TrimSuffix(rest, "_total")]) {
			return true
		}
	}
	return false
}

// TestOnlyMetricsThatExist: an alert or a panel over a metric that nobody exports
// is silent for ever.
func TestOnlyMetricsThatExist(t *testing.T) {
	metrics, name := metricsOfTheCode(t), regexp.MustCompile(`quayside_[a-z0-9_]+`)
	if metrics.has("quayside_members_total") || metrics.has("quayside_l2_nonsense_total") || !metrics.has("quayside_l2_replies_total") {
		t.Fatal("the code's metrics were not read")
	}
	used := map[string]string{}
	for _, object := range renderObjects(t, values(t, variants()["monitoring"])) {
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range name.FindAllString(string(text), -1) {
			used[found] = object.GetKind() + " " + object.GetName()
		}
	}
	for metric, where := range used {
		if !metrics.has(metric) {
			t.Errorf("%s uses %s, which nothing exports", where, metric)
		}
	}
	if len(used) < 25 {
		t.Errorf("only %d metrics are used: this test looks in the wrong place", len(used))
	}
}

// TestDashboards: what the sidecar of Grafana finds is JSON with panels that ask
// the data source somebody chose.
func TestDashboards(t *testing.T) {
	n := 0
	for _, object := range rendered(t, values(t, variants()["monitoring"])) {
		c, ok := object.(*corev1.ConfigMap)
		if !ok || c.Labels["grafana_dashboard"] != "1" {
			continue
		}
		for file, text := range c.Data {
			n++
			var dashboard struct {
				UID, Title string
				Panels     []struct {
					Title      string
					Datasource struct{ UID string }
					Targets    []struct{ Expr string }
				}
			}
			if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if dashboard.UID == "" || len(dashboard.Panels) < 10 {
				t.Errorf("%s: %q has %d panels", file, dashboard.UID, len(dashboard.Panels))
			}
			for _, p := range dashboard.Panels {
				if p.Title == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
					t.Errorf("%s: panel %q asks %q for %v", file, p.Title, p.Datasource.UID, p.Targets)
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d dashboards, want 2", n)
	}
}
