package chart

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// TestEveryValueCounts sets each value of values.yaml to another one: in some
// installation some object is another then. A value that no template reads would
// pass the schema and do nothing.
func TestEveryValueCounts(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	c.Schema = nil // the templates alone are in question, and it is slow
	all, before := variants(), map[string]map[string]string{}
	for name, text := range all {
		before[name] = manifests(t, c, values(t, text))
	}
	names := append([]string{"everything"}, slices.Sorted(maps.Keys(all))...) // most count in the first
	counts := func(at []string, value any) bool {
		for _, name := range names {
			changed := values(t, all[name])
			if changed == nil {
				changed = map[string]any{}
			}
			set(changed, at, another(value))
			if after := manifests(t, c, changed); after != nil && !maps.Equal(before[name], after) {
				return true
			}
		}
		return false
	}
	n := 0
	everyValue(c.Values, nil, func(at []string, value any) {
		n++
		if !counts(at, value) {
			t.Errorf("%s: whatever it is set to, no object changes", strings.Join(at, "."))
		}
	})
	if n < 100 || counts([]string{"proxy", "unread"}, "") {
		t.Errorf("of %d values all count, and one that no template reads, too: this test proves nothing", n)
	}
}

// everyValue calls visit for each value that holds no others.
func everyValue(in map[string]any, prefix []string, visit func(at []string, value any)) {
	for name, value := range in {
		at := append(slices.Clone(prefix), name)
		if inner, _ := value.(map[string]any); len(inner) > 0 {
			everyValue(inner, at, visit)
		} else {
			visit(at, value)
		}
	}
}

// another is a value of the same kind.
func another(value any) any {
	switch v := value.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case string:
		return "another/one"
	case []any:
		return []any{map[string]any{"name": "another"}}
	case map[string]any:
		return map[string]any{"http": "another"}
	default: // null
		return true
	}
}

// set sets the value at a path.
func set(in map[string]any, at []string, value any) {
	for ; len(at) > 1; at = at[1:] {
		inner, ok := in[at[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			in[at[0]] = inner
		}
		in = inner
	}
	in[at[0]] = value
}

// manifests is what would be installed; nil: nothing, for a template refuses.
func manifests(t *testing.T, c *chart.Chart, v map[string]any) map[string]string {
	t.Helper()
	merged, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "edge", Namespace: "quayside-system"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Engine{Strict: true}.Render(c, merged)
	if err != nil {
		return nil
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return path.Ext(name) != ".yaml" })
	return files
}
