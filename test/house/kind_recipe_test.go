package house

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A new kind of object is the three lines that cluster/snapshot/doc.go names:
// with them, and nothing else, its objects are read from manifests and watched.
func TestANewSnapshotKindIsThreeLines(t *testing.T) {
	const source = "../../cluster/snapshot/kind.go"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	grown := string(text)
	for _, line := range []struct{ before, add string }{
		{"\tSpeakerStatus\n", "\tLimitRange\n"},
		{"\tSpeakerStatuses   Store", "\tLimitRanges Store[*corev1.LimitRange]\n"},
		{"\t\tSpeakerStatus:    {", "\t\tLimitRange: {&s.LimitRanges, core, \"limitranges\", namespaced, listOf[corev1.LimitRangeList]},\n"},
	} {
		if strings.Count(grown, line.before) != 1 {
			t.Fatalf("%s: %q does not stand there once: does the recipe in doc.go still hold?", source, line.before)
		}
		grown = strings.Replace(grown, line.before, line.add+line.before, 1)
	}
	const reads = `package manifest

import (
	"testing"

	"quayside.io/cluster/snapshot"
)

func TestTheNewKindIsRead(t *testing.T) {
	r := Decode("new.yaml", []byte("{apiVersion: v1, kind: LimitRange, metadata: {name: bounds}}"))
	if len(r.Objects) != 1 || len(r.Errors)+len(r.Notes) > 0 {
		t.Fatalf("read %+v", r)
	}
	c := snapshot.Of(r.Objects...)
	if _, ok := c.LimitRanges.Get(snapshot.Key{Namespace: "default", Name: "bounds"}); !ok {
		t.Error("the object is not in its store")
	}
	if got := snapshot.LimitRange.Resource(); snapshot.LimitRange.String() != "LimitRange" || got.Name != "limitranges" {
		t.Errorf("the kind is %v, its resource %+v", snapshot.LimitRange, got)
	}
}
`
	dir := t.TempDir()
	replace := map[string]string{}
	for path, text := range map[string]string{source: grown, "../../cluster/manifest/new_kind_test.go": reads} {
		target, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		replace[target] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(replace[target], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-overlay", file, "-run", "TestTheNewKindIsRead|TestEveryKind", "quayside.io/cluster/snapshot", "quayside.io/cluster/manifest")
	test.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
