package chart

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// TestReusedValues: `helm upgrade --reuse-values` brings the values of the older
// release, without the defaults of this chart. Whatever of them it has not got, one
// value or a section of them, the objects are those of the defaults.
func TestReusedValues(t *testing.T) {
	c := loaded(t)
	want, text := manifests(t, c, nil), marshal(t, c.Values)
	n := 0
	everyPart(c.Values, nil, func(at []string) {
		n++
		c.Values = unmarshal(t, text)
		drop(c.Values, at)
		if got := manifests(t, c, nil); !byUsers(at[len(at)-1]) && !maps.Equal(got, want) {
			t.Errorf("without %s: nothing can be installed, or something else", strings.Join(at, "."))
		}
	})
	if n < 150 {
		t.Errorf("%d values and sections: this test proves nothing", n)
	}
	c.Values = map[string]any{}
	if got := manifests(t, c, nil); !maps.Equal(got, want) {
		t.Error("without any value it is not what the defaults give")
	}
}

// TestNullTakesAway: what users shape as a whole is gone if they say null, as ever
// with Helm, and does not come back in part.
func TestNullTakesAway(t *testing.T) {
	given := func(text string) string {
		return strings.Join(slices.Collect(maps.Values(manifests(t, loaded(t), values(t, text)))), "\n")
	}
	for _, part := range []string{"controller", "speaker", "proxy"} {
		plain := given("")
		for key, mark := range map[string]string{"resources": "requests:", "nodeSelector": "kubernetes.io/os: linux"} {
			without := given("{" + part + ": {" + key + ": null}}")
			if strings.Count(without, mark) != strings.Count(plain, mark)-1 {
				t.Errorf("%s.%s: null: %d times %q, without it %d times", part, key, strings.Count(without, mark), mark, strings.Count(plain, mark))
			}
		}
		if of := given("{" + part + ": {nodeSelector: {kubernetes.io/os: null, edge: yes-please}}}"); strings.Count(of, "kubernetes.io/os") != strings.Count(plain, "kubernetes.io/os")-1 {
			t.Errorf("%s.nodeSelector: what was taken away came back", part)
		}
	}
}

// byUsers reports whether a value of that name is shaped by users as a whole.
func byUsers(name string) bool {
	return slices.Contains([]string{"resources", "nodeSelector", "tolerations", "updateStrategy", "ports", "labels"}, name)
}

// loaded is the chart, without a schema: the templates alone are in question.
func loaded(t *testing.T) *chart.Chart {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	c.Schema = nil
	return c
}

// everyPart calls visit for each value, and for each section of them but those that
// users shape.
func everyPart(in map[string]any, prefix []string, visit func(at []string)) {
	for name, value := range in {
		at := append(slices.Clone(prefix), name)
		visit(at)
		if inner, ok := value.(map[string]any); ok && !byUsers(name) {
			everyPart(inner, at, visit)
		}
	}
}

// drop takes away the value at a path.
func drop(in map[string]any, at []string) {
	for ; len(at) > 1; at = at[1:] {
		in = in[at[0]].(map[string]any)
	}
	delete(in, at[0])
}

func marshal(t *testing.T, v map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func unmarshal(t *testing.T, text []byte) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
