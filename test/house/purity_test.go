package house

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// impure are imports that a pure package may not have, nor those below them, each with
// what to do instead.
func impure() map[string]string {
	return map[string]string{
		"net":              "addresses are net/netip values; sockets and HTTP belong to a driver",
		"os":               "files, processes and the environment belong to a driver",
		"io/ioutil":        "files belong to a driver",
		"log":              "a pure package returns Problems and events",
		"math/rand":        "randomness is an argument",
		"crypto/rand":      "randomness is an argument",
		"syscall":          "the kernel belongs to a driver",
		"golang.org/x/sys": "the kernel belongs to a driver",
	}
}

// harmless are imports below those of impure that are values only.
func harmless() []string { return []string{"net/netip", "net/url"} }

// whyImpure is why a pure package may not import path; "": it may.
func whyImpure(path string) string {
	for _, ok := range harmless() {
		if path == ok {
			return ""
		}
	}
	for banned, why := range impure() {
		if path == banned || strings.HasPrefix(path, banned+"/") {
			return why
		}
	}
	return ""
}

// hidden are functions by which time, randomness or a goroutine gets into a pure package
// past its imports, with what to do instead.
func hidden() map[string]string {
	const clock, chance = "time is an argument", "randomness is an argument"
	all := map[string]string{
		"hash/maphash.MakeSeed": chance, "hash/maphash.Hash": chance + ", and without SetSeed a Hash draws it",
		"crypto/ed25519.GenerateKey": chance, "crypto/ecdsa.GenerateKey": chance, "crypto/rsa.GenerateKey": chance,
		"context.WithTimeout": clock, "context.WithDeadline": clock,
	}
	for _, name := range []string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc"} {
		all["time."+name] = clock
	}
	return all
}

// names are the packages that a file imports, by the names that it has for them.
func (s source) names() map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

func TestPurePackagesArePure(t *testing.T) {
	floor := floors()
	for _, s := range sources(t) {
		if floor[s.pkg] > 2 || strings.Contains(s.path, "zz_generated") {
			continue
		}
		for _, fault := range s.impurities() {
			t.Error(fault)
		}
	}
}

// impurities are what makes a file impure.
func (s source) impurities() (faults []string) {
	for _, path := range s.imports() {
		if why := whyImpure(path); why != "" {
			faults = append(faults, s.path+" is pure and imports "+path+": "+why)
		}
	}
	names, banned := s.names(), hidden()
	if path, dotted := names["."]; dotted {
		faults = append(faults, s.path+" imports the names of "+path+" without its own: nobody sees then what comes from there")
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			faults = append(faults, s.fset.Position(n.Pos()).String()+": a pure package starts a goroutine; a driver does that")
		case *ast.SelectorExpr:
			x, _ := n.X.(*ast.Ident)
			if x == nil || names[x.Name] == "" {
				break
			}
			if why := banned[names[x.Name]+"."+n.Sel.Name]; why != "" {
				faults = append(faults, s.fset.Position(n.Pos()).String()+": a pure package uses "+names[x.Name]+"."+n.Sel.Name+": "+why)
			}
		}
		return true
	})
	return faults
}

// The test above sees what is imported below a banned path or under another name.
func TestImpurityIsSeen(t *testing.T) {
	for text, impure := range map[string]bool{
		`import "net/netip"; var _ netip.Addr`:                       false,
		`import "time"; func f(t time.Time) { t.After(t) }`:          false,
		`import "os/exec"; var _ exec.Cmd`:                           true,
		`import "net/http/httputil"; var _ httputil.ReverseProxy`:    true,
		`import "golang.org/x/sys/unix"; var _ unix.Stat_t`:          true,
		`import clock "time"; func f() { clock.Now() }`:              true,
		`import . "time"; func f() { Now() }`:                        true,
		`import "hash/maphash"; func f() { maphash.MakeSeed() }`:     true,
		`import "context"; func f() { context.WithTimeout(nil, 1) }`: true,
		`func f() { go f() }`:                                        true,
	} {
		if faults := parse(t, text).impurities(); (len(faults) > 0) != impure {
			t.Errorf("%s: %q", text, faults)
		}
	}
}

func TestNoInitAndNoGlobalState(t *testing.T) {
	for _, s := range sources(t) {
		for _, fault := range s.globals() {
			t.Error(fault)
		}
	}
}

// globals are what a file does behind the reader's back.
func (s source) globals() (faults []string) {
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				faults = append(faults, s.fset.Position(d.Pos()).String()+": init() runs behind the reader's back; call it from where it is needed")
			}
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				if v := spec.(*ast.ValueSpec); !s.isConstant(v) && !embedsFiles(d) {
					faults = append(faults, s.fset.Position(v.Pos()).String()+": package variable "+v.Names[0].Name+": only error sentinels, interface assertions, embedded files and main's version are global")
				}
			}
		}
	}
	return faults
}

// isConstant reports whether no variable of a declaration changes: each is an error that
// is made in place, such as ErrX = errors.New("…"), an assertion _ Interface = …, or the
// version that the linker sets.
func (s source) isConstant(v *ast.ValueSpec) bool {
	for i, name := range v.Names {
		switch {
		case name.Name == "_" && v.Type != nil:
		case name.Name == "version" && s.pkg == "" && len(v.Values) == len(v.Names):
			if _, text := v.Values[i].(*ast.BasicLit); !text {
				return false
			}
		case strings.HasPrefix(name.Name, "Err") || strings.HasPrefix(name.Name, "err"):
			if len(v.Values) != len(v.Names) || !s.makesError(v.Values[i]) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// makesError reports whether an expression makes an error.
func (s source) makesError(e ast.Expr) bool {
	call, _ := e.(*ast.CallExpr)
	if call == nil {
		return false
	}
	f, _ := call.Fun.(*ast.SelectorExpr)
	if f == nil {
		return false
	}
	x, _ := f.X.(*ast.Ident)
	if x == nil {
		return false
	}
	switch s.names()[x.Name] + "." + f.Sel.Name {
	case "errors.New", "fmt.Errorf", module + "/proxy/frame.Fail":
		return true
	}
	return false
}

// The test above looks at every name, and at what it is made of.
func TestGlobalStateIsSeen(t *testing.T) {
	for text, global := range map[string]bool{
		`import "errors"; var ErrOver = errors.New("over")`:             false,
		`import "fmt"; var errA, errB = fmt.Errorf(""), fmt.Errorf("")`: false,
		`import "io"; var _ io.Reader = (*file)(nil)`:                   false,
		`var errors map[string]int`:                                     true,
		`var errCount = 0`:                                              true,
		`import "errors"; var errA, cache = errors.New(""), ""`:         true,
		`var _, cache = 0, map[string]int{}`:                            true,
		`var version = "1"`:                                             true,
		`func init() {}`:                                                true,
	} {
		if faults := parse(t, text).globals(); (len(faults) > 0) != global {
			t.Errorf("%s: %q", text, faults)
		}
	}
}

func embedsFiles(d *ast.GenDecl) bool {
	return d.Doc != nil && strings.Contains(d.Doc.List[len(d.Doc.List)-1].Text, "//go:embed")
}
