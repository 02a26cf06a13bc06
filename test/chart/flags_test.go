package chart

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestFlagsExist starts the binary with every command line that the chart can
// write, plus --help: it parses all flags, then prints and ends.
func TestFlagsExist(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "quayside")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir = filepath.Dir(filepath.Dir(root))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build quayside: %v\n%s", err, out)
	}
	for name, text := range variants() {
		for component, w := range workloads(t, text) {
			args := start(t, w).Args
			if out, err := exec.CommandContext(t.Context(), binary, slices.Concat(args, []string{"--help"})...).CombinedOutput(); err != nil {
				t.Errorf("%s: %s does not take its flags %q: %v\n%s", name, component, args, err, out)
			}
		}
	}
	bad := exec.CommandContext(t.Context(), binary, "proxy", "--no-such-flag", "--help")
	if err := bad.Run(); err == nil {
		t.Error("an unknown flag passes: this test proves nothing")
	}
}
