package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

const separator = "========\n"

// TestScenarios reads each file of testdata: a manifest, a line of equals signs,
// and what is read from it.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, ok := strings.Cut(string(text), separator)
			if !ok {
				t.Fatalf("%s has no line %q", file, separator)
			}
			r := manifest.Decode("in.yaml", []byte(input))
			var got strings.Builder
			for _, o := range r.Objects {
				got.WriteString(snapshot.RefOf(o).String() + "\n")
			}
			for _, p := range r.Errors {
				got.WriteString("error " + p.String() + "\n")
			}
			for _, p := range r.Notes {
				got.WriteString("note " + p.String() + "\n")
			}
			if d := cmp.Diff(want, got.String()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func one[O snapshot.Object](t *testing.T, text string) O {
	t.Helper()
	r := manifest.Decode("in.yaml", []byte(text))
	if len(r.Errors) > 0 || len(r.Objects) != 1 {
		t.Fatalf("%d objects, errors %v", len(r.Objects), r.Errors)
	}
	return r.Objects[0].(O)
}

// asYAML shows what is set in o, for comparison with a text in the test.
func asYAML(t *testing.T, o snapshot.Object) string {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Nothing a file may hold makes the reader panic, and what it says about lines
// stays within the file.
func TestAnyTextIsSurvived(t *testing.T) {
	words := rapid.SampledFrom([]string{
		"apiVersion: v1\n", "kind: Service\n", "kind: List\n", "metadata: {name: a}\n", "items:\n", "- ", "spec:\n", "  ports:\n",
		"  - port: x\n", "---\n", "--- # c\n", "---x\n", "&a ", "*a\n", "{", "}", "[", "]\n", "\t", "null\n", "\"\n", "\x00", "é\n", "spec: {rules: [{host: 1}]}\n",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(words, 0, 20).Draw(t, "words"), "")
		for _, p := range manifest.Decode("f", []byte(text)).Errors {
			if !strings.HasPrefix(p.Message, "document ") {
				t.Fatalf("%q names no document", p.Message)
			}
		}
	})
}
