package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// pages are the texts of the documentation by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	chart, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(chart, "..", "..")
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = string(text)
	}
	return all
}

// TestPagesSetValuesThatExist renders the chart with every values file and every --set
// that the pages show: the schema refuses names that are not there.
func TestPagesSetValuesThatExist(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	set := regexp.MustCompile(`--set (?:'([^']+)'|([^\s` + "`" + `]+))`)
	placeholder := regexp.MustCompile(`[A-Z]{3,}`) // for what the reader puts there
	files, sets := 0, 0
	for path, text := range pages(t) {
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if strings.Contains(b[1], "apiVersion:") {
				continue // objects, which package command reads
			}
			files++
			var values map[string]any
			if err := yaml.UnmarshalStrict([]byte(b[1]), &values); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, b[1])
			} else if _, _, err := Render("quayside", "quayside-system", values); err != nil {
				t.Errorf("%s: %v for\n%s", path, err, b[1])
			}
		}
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			values, found := map[string]any{}, set.FindAllStringSubmatch(line, -1)
			for _, s := range found {
				sets++
				if err := strvals.ParseInto(placeholder.ReplaceAllStringFunc(s[1]+s[2], strings.ToLower), values); err != nil {
					t.Errorf("%s: %s: %v", path, s[0], err)
				}
			}
			if len(found) == 0 {
				continue
			}
			if _, _, err := Render("quayside", "quayside-system", values); err != nil {
				t.Errorf("%s: %s: %v", path, line, err)
			}
		}
	}
	if files < 4 || sets < 10 {
		t.Errorf("%d values files and %d --set: this test looks in the wrong place", files, sets)
	}
}

// TestPagesNameValuesThatExist: a path of values that a page names in code is one of the
// chart's.
func TestPagesNameValuesThatExist(t *testing.T) {
	chart, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defaults, named := values(t, string(text)), 0
	path := regexp.MustCompile("`((?:proxy|speaker|ingressClass|metrics|loadBalancer)(?:\\.[a-zA-Z]+)+)[`:=]")
	for page, text := range pages(t) {
		for _, found := range path.FindAllStringSubmatch(text, -1) {
			named++
			var at any = defaults
			for part := range strings.SplitSeq(found[1], ".") {
				of, _ := at.(map[string]any)
				below, ok := of[part]
				if !ok && len(of) > 0 {
					t.Errorf("%s names the value %s, which the chart has not", page, found[1])
					break
				}
				at = below
			}
		}
	}
	if named < 40 {
		t.Errorf("the pages name %d values: this test looks in the wrong place", named)
	}
}

// TestPagesNameMetricsThatExist, and the list of metrics has them all.
func TestPagesNameMetricsThatExist(t *testing.T) {
	metrics, name := metricsOfTheCode(t), regexp.MustCompile(`quayside_[a-z0-9_]*[a-z0-9]`)
	var list string
	for path, text := range pages(t) {
		if filepath.Base(path) == "metrics.md" {
			list = text
		}
		for _, found := range name.FindAllString(text, -1) {
			if !metrics.has(found) {
				t.Errorf("%s names %s, which nothing exports", path, found)
			}
		}
	}
	for file := range metrics.undescribed {
		t.Errorf("%s describes metrics by collecting them, so docs/metrics.md may lack some", file)
	}
	for metric := range metrics.whole {
		if !strings.HasSuffix(metric, "_") && !strings.Contains(list, "`"+metric+"`") {
			t.Errorf("docs/metrics.md does not list %s; run make generate", metric)
		}
	}
}
