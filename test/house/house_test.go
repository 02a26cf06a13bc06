// Package house tests the architecture: which package may import which, and what
// a pure one may not do. A failure names the file, the line and the reason, and
// so what to do instead.
//
// The words: a floor is a layer, and imports point down; floors 0 to 2 are pure;
// a driver is a package of floor 3, which touches the world; a component connects
// drivers.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "quayside.io"

// component is the floor of the packages that connect drivers.
const component = 4

// folders is the tree from the top down. Whatever is in a folder imports its
// own folder and those further down; the two components on one line never meet.
func folders() [][]string {
	return [][]string{{""}, {"command"}, {"controller"}, {"speaker", "proxy"}, {"cluster"}, {"lbpool"}, {"api"}}
}

// floors is the house from the bottom up. A package imports only packages of a
// lower floor, and siblings of its own floor where sideways says so. Every
// package of the product stands here.
func floors() map[string]int {
	return map[string]int{
		"api/v1alpha1":          0,
		"cluster/printable":     0,
		"lbpool":                0,
		"cluster/tickets":       0,
		"cluster/gossipkey":     0,
		"cluster/snapshot":      1,
		"cluster/ingressclass":  1,
		"cluster/loadbalancer":  1,
		"cluster/networkpolicy": 0,
		"proxy/coding":          0,
		"proxy/seclang":         0,
		"proxy/nginxconf":       0,
		"proxy/snippet":         2,
		"proxy/proxyheader":     0,
		"proxy/exchange":        1,
		"proxy/geoip":           1,
		"proxy/accesslog":       1,
		"proxy/frame":           2,
		"proxy/otlp":            2,
		"cluster/manifest":      2,
		"cluster/lastknown":     2,
		"controller/assign":     2,
		"speaker/due":           0,
		"speaker/announce":      2,
		"speaker/bgp/fsm":       2,
		"speaker/bfd/session":   2,
		"speaker/ownership":     2,
		"proxy/route":           2,
		"proxy/balance":         2,
		"proxy/filter":          2,
		"command/explain":       2,
		"command/migrate":       2,
		"cluster":               3,
		"cluster/privatefile":   3,
		"speaker/l2":            3,
		"speaker/bfd":           3,
		"speaker/bgp":           3,
		"speaker/members":       3,
		"speaker/rtadv":         3,
		"speaker/kubeproxy":     3,
		"proxy/upstream":        3,
		"proxy/streams":         3,
		"proxy/asker":           3,
		"proxy/refresh":         3,
		"proxy/names":           3,
		"proxy/stapler":         3,
		"proxy/waf":             3,
		"proxy/linewriter":      3,
		"proxy/exporter":        3,
		"proxy/spool":           3,
		"proxy/dispatch":        3,
		"proxy/serve":           3,
		"proxy/socket":          3,
		"proxy/h2":              3,
		"command/admin":         3,
		"command/demo":          3,
		"command/forward":       3,
		"command/live":          3,
		"controller":            component,
		"speaker":               component,
		"proxy":                 component,
		"command":               component + 1,
		"":                      component + 2, // main.go
	}
}

// sideways are the imports within one floor that the house allows, with the reason.
func sideways() map[string]string {
	return map[string]string{
		"cluster/ingressclass -> cluster/snapshot": "the classes of a snapshot are judged",
		"cluster -> cluster/privatefile":           "what is known is kept in such a file",
		"proxy/upstream -> proxy/streams":          "a part of upstream that nobody else imports",
		"proxy/upstream -> proxy/socket":           "system calls that cannot wait",
		"proxy/serve -> proxy/socket":              "system calls that cannot wait",
		"proxy/asker -> proxy/socket":              "an option of sockets",
		"proxy/names -> proxy/refresh":             "the loop that asks again",
		"proxy/stapler -> proxy/refresh":           "the loop that asks again",
		"proxy/exporter -> proxy/refresh":          "its signals",
		"proxy/route -> proxy/balance":             "a backend names its port in balance's words",
		"proxy/route -> proxy/filter":              "options are parsed into the filters' settings",
		"proxy/route -> proxy/snippet":             "a snippet of fields is parsed into options",
		"proxy/snippet -> proxy/filter":            "a snippet says which variables act",
		"proxy/accesslog -> proxy/exchange":        "a line tells of an exchange",
		"command/explain -> proxy/route":           "explain shows the route that matches",
		"command/explain -> proxy/balance":         "explain shows the endpoints behind a route",
		"command/explain -> controller/assign":     "explain shows why a Service waits",
		"command/explain -> speaker/announce":      "explain shows which routers learn an address",
		"command/migrate -> cluster/manifest":      "one conversion of old Ingresses, whoever reads them",
		"command/migrate -> proxy/filter":          "migrate says which variables act",
		"command/migrate -> proxy/snippet":         "migrate says what replaces a directive",
		"command/migrate -> proxy/route":           "migrate says what the proxy makes of an annotation",
		"speaker/ownership -> speaker/announce":    "the machine remembers what announce decides from",
	}
}

// keepers are the libraries that only a few packages may import, or none.
func keepers() map[string][]string {
	return map[string][]string{
		"k8s.io/client-go":                      {"cluster"},
		"k8s.io/client-go/kubernetes":           {}, // all kinds that there are: a third of what is compiled
		"k8s.io/client-go/informers":            {},
		"k8s.io/client-go/tools/leaderelection": {}, // both of them
		"github.com/mdlayher/arp":               {"speaker/l2"},
		"github.com/mdlayher/ndp":               {"speaker/l2", "speaker/rtadv"},
		"github.com/mdlayher/packet":            {"speaker/l2"},
		"github.com/osrg/gobgp":                 {"speaker/bgp"},
		"github.com/hashicorp/memberlist":       {"speaker/members"},
		"github.com/valyala/fasthttp":           {"proxy/serve"},
		"github.com/fsnotify/fsnotify":          {"cluster", "speaker/members"},
		"github.com/vishvananda/netlink":        {"speaker/l2"},
		"github.com/pires/go-proxyproto":        {},
		"github.com/tg123/go-htpasswd":          {"proxy/filter"},
		"github.com/andybalholm/brotli":         {"proxy/coding"},
		"github.com/klauspost/compress":         {"proxy/coding"},
		"github.com/corazawaf":                  {"proxy/waf"},
		"github.com/spf13/cobra":                {"command"},
		"github.com/spf13/pflag":                {"command"},
		"golang.org/x/net/http2":                {"proxy/frame", "proxy/h2", "proxy/streams"},
		"k8s.io/klog":                           {"cluster"},
		"github.com/go-logr":                    {"cluster"},
		"sigs.k8s.io/yaml":                      {"cluster/manifest", "cluster/printable", "command/migrate"},
		"go.yaml.in/yaml":                       {"cluster/manifest"},
		"sigs.k8s.io/controller-runtime":        {},
		"k8s.io/kubernetes":                     {},
		"github.com/prometheus/client_golang":   {"command/admin", "cluster", "speaker/l2", "speaker/bfd", "speaker/bgp", "speaker/members", "proxy/upstream", "proxy/asker", "proxy/waf", "proxy/linewriter", "proxy/exporter", "proxy/spool", "proxy/dispatch", "proxy/serve", "proxy/h2", "controller", "speaker", "proxy", "command"},
	}
}

type source struct {
	pkg  string
	path string
	file *ast.File
	fset *token.FileSet
}

// sources parses every non-test Go file of the product.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if rel == "test" || (strings.HasPrefix(d.Name(), ".") && rel != ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if pkg == "." {
			pkg = ""
		}
		all = append(all, source{pkg, filepath.ToSlash(rel), file, fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found only %d Go files: the test looks in the wrong place", len(all))
	}
	return all
}

// parse makes a file of some declarations, for tests of the checks themselves.
func parse(t *testing.T, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", "package x; "+text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{"x", "x.go", file, fset}
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, path)
	}
	return paths
}

func TestImportsPointDownTheFloors(t *testing.T) {
	floor, allowed := floors(), sideways()
	for _, s := range sources(t) {
		mine, ok := floor[s.pkg]
		if !ok {
			t.Errorf("%s: package %q has no floor; give it one in floors() of this test", s.path, s.pkg)
			continue
		}
		for _, path := range s.imports() {
			pkg, ours := strings.CutPrefix(path, module+"/")
			if !ours {
				continue
			}
			theirs, ok := floor[pkg]
			switch {
			case !ok:
				t.Errorf("%s imports %s, which has no floor", s.path, path)
			case theirs < mine:
			case theirs == mine && allowed[s.pkg+" -> "+pkg] != "":
			default:
				t.Errorf("%s (floor %d) imports %s (floor %d): imports point down, and only a component connects two drivers",
					s.path, mine, path, theirs)
			}
		}
	}
}

// place is where the folder of a package stands in the tree, counted from the top.
func place(pkg string) (level int, folder string) {
	folder, _, _ = strings.Cut(pkg, "/")
	for i, names := range folders() {
		if slices.Contains(names, folder) {
			return i, folder
		}
	}
	return -1, folder
}

func TestFoldersImportDownTheTree(t *testing.T) {
	for _, s := range sources(t) {
		mine, folder := place(s.pkg)
		if mine < 0 {
			t.Errorf("%s: folder %q has no place; give it one in folders() of this test", s.path, folder)
			continue
		}
		for _, path := range s.imports() {
			pkg, ours := strings.CutPrefix(path, module+"/")
			if !ours {
				continue
			}
			if theirs, other := place(pkg); other != folder && theirs <= mine {
				t.Errorf("%s imports %s: folders import down the tree %q, never up or across", s.path, path, folders())
			}
		}
	}
}

func TestOneLibraryOnePackage(t *testing.T) {
	keep := keepers()
	for _, s := range sources(t) {
		for _, path := range s.imports() {
			for library, packages := range keep {
				if path != library && !strings.HasPrefix(path, library+"/") {
					continue
				}
				if !slices.Contains(packages, s.pkg) {
					t.Errorf("%s imports %s, which only %q may: say what you need in that package's words", s.path, path, packages)
				}
			}
		}
	}
}

// Whatever the tables allow, somebody does: a permission that nobody needs is
// one that nobody gave a thought to.
func TestNoPermissionIsUnused(t *testing.T) {
	exists, imports := map[string]bool{}, map[string]bool{} // the latter by "importer -> imported"
	for _, s := range sources(t) {
		exists[s.pkg] = true
		for _, path := range s.imports() {
			if pkg, ours := strings.CutPrefix(path, module+"/"); ours {
				imports[s.pkg+" -> "+pkg] = true
				continue
			}
			for library := range keepers() {
				if path == library || strings.HasPrefix(path, library+"/") {
					imports[s.pkg+" -> "+library] = true
				}
			}
		}
	}
	for pkg := range floors() {
		if !exists[pkg] {
			t.Errorf("floors() has %q, and there is no such package", pkg)
		}
	}
	for both := range sideways() {
		if !imports[both] {
			t.Errorf("sideways() allows %q, which no file imports", both)
		}
	}
	for library, packages := range keepers() {
		for _, pkg := range packages {
			if !imports[pkg+" -> "+library] {
				t.Errorf("keepers() lets %s import %s, which it does not", pkg, library)
			}
		}
	}
}
