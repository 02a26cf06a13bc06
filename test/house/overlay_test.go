package house

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// line is what a recipe adds to a file, and before which text.
type line struct{ before, add string }

// testOverlaid runs the tests of packages as if a recipe had been followed: lines
// were added to files, and files to the tree. Nothing is written to the tree.
func testOverlaid(t *testing.T, edits map[string][]line, files map[string]string, run string, packages ...string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	put := func(path, text string) {
		copied := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, path)] = copied
	}
	for path, text := range files {
		put(path, text)
	}
	for path, lines := range edits {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		grown := string(text)
		for _, l := range lines {
			if strings.Count(grown, l.before) != 1 {
				t.Fatalf("%s: %q does not stand there once: does the recipe in doc.go still hold?", path, l.before)
			}
			grown = strings.Replace(grown, l.before, l.add+l.before, 1)
		}
		put(path, grown)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	put("overlay.json", string(overlay))
	args := []string{"test", "-overlay", replace[filepath.Join(root, "overlay.json")], "-vet", "off", "-v", "-run", run}
	for _, p := range packages {
		args = append(args, module+"/"+p)
	}
	test := exec.CommandContext(t.Context(), "go", args...)
	test.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := test.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}
