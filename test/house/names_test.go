package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// banned are names that say nothing to a reader from this field, or several things, each
// with the word to use.
func banned() map[string]string {
	return map[string]string{
		"hall":     "component",
		"hand":     "driver",
		"mind":     "plan, decision or state",
		"pulse":    "probe or heartbeat",
		"vigil":    "monitor",
		"farewell": "close, or the word of the protocol (GOAWAY, NOTIFICATION, CEASE)",
		"hearsay":  "view, or what is heard from whom",
		"herald":   "announce",
		"quarrel":  "flapping",
		"pledge":   "claim",
		"scene":    "view or snapshot",
		"estate":   "pools or index",
		"calling":  "index or data",
		"audience": "subscribers",
		"ground":   "input",
		"stranger": "unknown, foreign or unadmitted",
		"guest":    "known",
		"whom":     "target",
		"burden":   "load",
		"heir":     "successor",
		"thing":    "what it is",
		"stuff":    "what it is",
		"helper":   "what it does",
		"manager":  "what it does",
		"misc":     "what it is",
		"doer":     "what it does",
	}
}

// declared calls f for every type, function, method, field, constant and package variable
// that a file declares.
func (s source) declared(f func(id *ast.Ident, doc bool)) {
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			f(d.Name, d.Doc != nil || d.Recv != nil && !receiverIsExported(d))
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch v := spec.(type) {
				case *ast.TypeSpec:
					f(v.Name, v.Doc != nil || d.Doc != nil)
					fields(v.Type, func(id *ast.Ident) { f(id, true) })
				case *ast.ValueSpec:
					for _, id := range v.Names {
						f(id, v.Doc != nil || v.Comment != nil || d.Doc != nil)
					}
				}
			}
		}
	}
}

// receiverIsExported reports whether the method is one of an exported type.
func receiverIsExported(d *ast.FuncDecl) bool {
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !exported {
			exported = id.IsExported()
			return false
		}
		return true
	})
	return exported
}

// fields calls f for the fields and methods that a type expression names.
func fields(t ast.Expr, f func(*ast.Ident)) {
	ast.Inspect(t, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			for _, id := range field.Names {
				f(id)
			}
		}
		_, signature := n.(*ast.FuncType)
		return !signature
	})
}

func TestExportedNamesHaveComments(t *testing.T) {
	for _, s := range sources(t) {
		if strings.Contains(s.path, "zz_generated") || s.file.Name.Name == "main" {
			continue
		}
		s.declared(func(id *ast.Ident, documented bool) {
			if id.IsExported() && !documented && !isObvious(id.Name) {
				t.Errorf("%s: %s is exported and has no comment: say what it is, in what unit and range", s.fset.Position(id.Pos()), id.Name)
			}
		})
	}
}

// isObvious names methods of the standard library's interfaces that every reader knows.
func isObvious(name string) bool {
	return slices.Contains([]string{"Error", "Unwrap", "Len", "Less", "Swap", "Push", "Pop", "ServeHTTP", "MarshalJSON", "UnmarshalJSON"}, name)
}

// words are those of a name in camel case, in lower case.
func words(name string) (list []string) {
	from := 0
	for i := 1; i <= len(name); i++ {
		if i == len(name) || name[i] >= 'A' && name[i] <= 'Z' && !(name[i-1] >= 'A' && name[i-1] <= 'Z') || name[i] == '_' {
			list = append(list, strings.ToLower(strings.Trim(name[from:i], "_")))
			from = i
		}
	}
	return list
}

// A name may not have a banned word, nor its plural.
func TestNamesNeedNoGlossary(t *testing.T) {
	instead := banned()
	for _, s := range sources(t) {
		s.declared(func(id *ast.Ident, _ bool) {
			list := words(id.Name)
			for i, word := range list {
				if i+1 < len(list) && (list[i+1] == "over" || list[i+1] == "down") {
					continue // a hand-over
				}
				better := instead[word]
				if better == "" {
					better = instead[strings.TrimSuffix(word, "s")]
				}
				if better != "" {
					t.Errorf("%s: %s: a reader from this field does not know what %q means here; say %s", s.fset.Position(id.Pos()), id.Name, word, better)
				}
			}
		})
	}
}

func TestWordsOfNames(t *testing.T) {
	for name, want := range map[string]string{"whom": "whom", "newScene": "new scene", "MaxURL": "max url", "strangerTime": "stranger time"} {
		if got := strings.Join(words(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// withoutExample are the packages that need none, with the reason.
func withoutExample() map[string]string {
	return map[string]string{
		"":              "main.go is not imported",
		"speaker":       "it speaks to the LANs of the machine that it runs on",
		"speaker/l2":    "it needs raw sockets",
		"speaker/rtadv": "it needs raw sockets",
		"speaker/bfd":   "its UDP ports are those of the RFC, and one process of a machine has them",
	}
}

// Every package that others may import shows what it does by an Example that runs.
func TestPackagesHaveAnExample(t *testing.T) {
	for pkg := range floors() {
		reason, excepted := withoutExample()[pkg]
		switch has := hasExample(t, pkg); {
		case !has && !excepted:
			t.Errorf("%s has no Example with an Output: show a reader what it does", pkg)
		case has && excepted:
			t.Errorf("withoutExample() excuses %q, since %s, but it has an Example", pkg, reason)
		}
	}
	for pkg := range withoutExample() {
		if _, exists := floors()[pkg]; !exists {
			t.Errorf("withoutExample() has %q, and there is no such package", pkg)
		}
	}
}

// hasExample reports whether a package has an Example that go test runs.
func hasExample(t *testing.T, pkg string) bool {
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") && f.Recv == nil {
				if body := string(text[fset.Position(f.Pos()).Offset:fset.Position(f.End()).Offset]); strings.Contains(body, "// Output:") || strings.Contains(body, "// Unordered output:") {
					return true
				}
			}
		}
	}
	return false
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	documented, seen := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		seen[s.pkg] = true
		if s.file.Doc != nil {
			documented[s.pkg] = true
		}
		if strings.HasSuffix(s.path, "/doc.go") {
			lines := s.fset.Position(s.file.End()).Line
			if lines > 31 { // 30, and the package clause
				t.Errorf("%s has a comment of %d lines; a doc.go has at most 30", s.path, lines-1)
			}
		}
	}
	for pkg := range seen {
		if !documented[pkg] {
			t.Errorf("package %q has no package comment: say what it is for, who may import it and what it keeps true", pkg)
		}
	}
}

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	for _, s := range sources(t) {
		if strings.Contains(s.path, "zz_generated") {
			continue
		}
		if lines := s.fset.Position(s.file.End()).Line; lines > 500 {
			t.Errorf("%s has %d lines (500 at most): is there a second package in it?", s.path, lines)
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				from, to := s.fset.Position(f.Pos()).Line, s.fset.Position(f.End()).Line
				if to-from >= 80 {
					t.Errorf("%s:%d: %s has %d lines (80 at most)", s.path, from, f.Name.Name, to-from+1)
				}
			}
		}
	}
}

// A comment that begins its line is as wide as a page, in tests too. What a machine reads
// is as long as it has to be, and so is what an Example prints.
func TestCommentsFitThePage(t *testing.T) {
	const width, tab = 100, 4
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || d.Name() == "example_test.go" || strings.HasPrefix(d.Name(), "zz_generated") {
			return err
		}
		text, err := os.ReadFile(path)
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			comment := strings.TrimLeft(strings.TrimRight(line, "\n"), "\t")
			wide := utf8.RuneCountInString(comment) + tab*(len(line)-len(strings.TrimLeft(line, "\t")))
			if wide > width && strings.HasPrefix(comment, "// ") && !strings.HasPrefix(comment, "// +") && !strings.Contains(comment, "://") {
				t.Errorf("%s:%d: the comment is %d columns wide (%d at most)", path, number, wide, width)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNoPackageForLeftovers(t *testing.T) {
	for _, s := range sources(t) {
		switch base := filepath.Base(s.pkg); base {
		case "util", "utils", "common", "helpers", "types", "misc", "pkg":
			t.Errorf("%s: a package called %q is one for leftovers; a function lives with the type it serves", s.path, base)
		}
	}
}
