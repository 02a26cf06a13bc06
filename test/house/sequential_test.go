package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The Makefile tests the packages of SEQUENTIAL without the race detector. That
// loses nothing as long as neither they nor their tests start a goroutine.
func TestWhatIsTestedWithoutTheRaceDetectorIsSequential(t *testing.T) {
	root := filepath.Join("..", "..")
	packages := makeList(t, filepath.Join(root, "Makefile"), "SEQUENTIAL")
	if len(packages) < 10 {
		t.Fatalf("SEQUENTIAL is %q", packages)
	}
	for _, p := range packages {
		dir := filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(p, "/...")))
		pattern := "*.go"
		if strings.HasSuffix(p, "/...") {
			pattern = "*/*.go"
		}
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no Go files (%v)", p, err)
		}
		for _, file := range files {
			if why := concurrent(t, file); why != "" {
				t.Errorf("%s: take %s out of SEQUENTIAL in the Makefile", why, p)
			}
		}
	}
}

// concurrent says where a file starts a goroutine; "" nowhere.
func concurrent(t *testing.T, file string) string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n ast.Node, what string) string { return fset.Position(n.Pos()).String() + ": " + what }
	starts := []string{"Go", "Parallel", "RunParallel", "AfterFunc"}
	why := ""
	for _, i := range f.Imports {
		if path := strings.Trim(i.Path.Value, `"`); slices.Contains([]string{"net/http", "net/http/httptest", "golang.org/x/sync/errgroup"}, path) {
			why = at(i, "imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			why = at(n, "go statement")
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(starts, s.Sel.Name) {
				why = at(n, s.Sel.Name)
			}
		}
		return true
	})
	return why
}

// makeList is the value of a variable of a Makefile.
func makeList(t *testing.T, file, name string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(string(text), "\\\n", " "), "\n"+name+" = ")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line)
}
