package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// faulty is a module. A line with what is wrong names the check that finds it.
var faulty = map[string]string{
	"go.mod": "module quayside.io/faulty\n\ngo 1.26\n",
	"faulty.go": `// Package faulty has faults.
package faulty

import (
	"fmt"
	"sync"
	"testing"
)

type point struct{ x int }

func unused() {} // want U1000

func usedByTests() {}

func Print(p *point) {
	if p == nil {
		fmt.Println("none")
	}
	fmt.Println(p.x) // want SA5011
}

func Copy(sync.Mutex) {} // want copylocks

// Fail does nothing after t.Fatal, which the standard library tells.
func Fail(t *testing.T, p *point) {
	if p == nil {
		t.Fatal("none")
	}
	fmt.Println(p.x)
}
`,
	"faulty_test.go": "package faulty\n\nimport \"testing\"\n\nfunc TestIt(*testing.T) { usedByTests() }\n",
	"spared.go":      "package faulty\n\n//lint:file-ignore U1000 an example\n\nfunc alsoUnused() {}\n",
}

func TestWhatIsFound(t *testing.T) {
	tool, dir := filepath.Join(t.TempDir(), "lint"), t.TempDir()
	if out, err := run(t, ".", "build", "-o", tool, "."); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range faulty {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]bool{}
	for i, line := range strings.Split(faulty["faulty.go"], "\n") {
		if _, check, ok := strings.Cut(line, "// want "); ok {
			want[fmt.Sprintf("faulty.go:%d %s", i+1, check)] = true
		}
	}
	out, err := run(t, dir, "vet", "-vettool="+tool, ".")
	if err == nil {
		t.Error("it ends as if nothing were found")
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)([a-z]+\.go:\d+):\d+: .* \((.*)\)$`).FindAllStringSubmatch(out, -1) {
		found[m[1]+" "+m[2]] = true
	}
	if !maps.Equal(found, want) {
		t.Errorf("found %q, want %q: %s", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(want)), out)
	}
}

// run has go do something where no flag of this tree holds.
func run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, err := c.CombinedOutput()
	return string(out), err
}
