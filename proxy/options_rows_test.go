package proxy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// optionRow is one row of docs/ingress-nginx.md, which another test keeps what the
// table of options says.
type optionRow struct {
	key   string
	wide  bool   // of the ConfigMap
	unset string // what ingress-nginx has by default
	here  string // how much of it acts, in the words of the page
}

func (r optionRow) String() string {
	if r.wide {
		return "option " + r.key
	}
	return "annotation " + r.key
}

// acts reports whether an Ingress or the ConfigMap changes anything by it.
func (r optionRow) acts() bool {
	return strings.HasPrefix(r.here, "same") || strings.HasPrefix(r.here, "differs") || r.here == "ours"
}

// optionRows reads both tables of the page.
func optionRows(t *testing.T) []optionRow {
	t.Helper()
	page, err := os.ReadFile("../docs/ingress-nginx.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []optionRow
	wide := false
	for line := range strings.Lines(string(page)) {
		wide = wide || strings.HasPrefix(line, "# The ConfigMap")
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `") || len(cells) < 6 {
			continue
		}
		key, _, _ := strings.Cut(strings.Trim(cells[1], " `"), "`")
		row := optionRow{key: key, wide: wide, unset: strings.Trim(cells[2], " `"), here: strings.TrimSpace(cells[3])}
		if !wide {
			row.unset, row.here = strings.Trim(cells[3], " `"), strings.TrimSpace(cells[4])
		}
		rows = append(rows, row)
	}
	if len(rows) < 200 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	return rows
}

// testNames are what tests of this folder, which go over HTTP, are named after: those
// given to Run, the keys of tables of cases, and the tests themselves in the form
// "testserveralias".
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	text := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil {
				names[s] = true
			}
		}
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[strings.ToLower(n.Name.Name)] = true
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Run" && len(n.Args) == 2 {
					text(n.Args[0])
				}
			case *ast.CompositeLit: // a case, whose type is that of the table
				if n.Type == nil && len(n.Elts) > 2 {
					text(n.Elts[0])
				}
			}
			return true
		})
	}
	return names
}

// Whatever acts has a test over HTTP that is named after its key. What does not act is
// asked for below, row by row.
func TestEveryOptionHasATestOfItsName(t *testing.T) {
	names := testNames(t)
	for _, row := range optionRows(t) {
		if row.acts() && !names[row.key] && !names["test"+strings.ReplaceAll(row.key, "-", "")] {
			t.Errorf("no test over HTTP is named after %v, which says %q", row, row.here)
		}
	}
	if names["no-such-option"] || names["testnosuchoption"] {
		t.Error("anything passes: this test proves nothing")
	}
}

// Who sets what does not act here is served as before, and told so unless there is
// nothing to miss. Raw configuration that guards closes.
func TestOptionsThatDoNotAct(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
	})
	files.Put(configMap("wide"), service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")))
	set := func(row optionRow, host, value string) {
		ing := annotated("web", host, nil)
		class := ingressclass.NginxName
		ing.Spec.IngressClassName = &class
		if row.wide {
			files.Put(configMap("wide", row.key, value), ing)
			return
		}
		ing.Annotations["nginx.ingress.kubernetes.io/"+row.key] = value
		files.Put(configMap("wide"), ing)
	}
	for i, row := range optionRows(t) {
		if row.acts() {
			continue
		}
		t.Run(row.key, func(t *testing.T) {
			told := row.here != "accepted"
			check := func(host string, status int, says string) {
				t.Helper()
				var got int
				var said string
				eventually(t, fmt.Sprintf("%v (%s) answers %d with %q, told: %v", row, row.here, status, says, told), func() bool {
					got, said = ask(t, bound(p, false), host, "/x")
					return got == status && strings.Contains(said, says) && namedByProblem(p, row) == told
				})
				if strings.Contains(strings.ToLower(said), "server: nginx") {
					t.Errorf("it says which proxy it is: %s", said)
				}
			}
			value := "true"
			if row.unset == "true" {
				value = "false"
			}
			raw := strings.HasPrefix(row.here, "refused")
			if raw {
				value = `more_set_headers "X-Evil: yes";`
			}
			host := fmt.Sprintf("a%d.test", i)
			set(row, host, value)
			check(host, 200, "web uri=/x ")
			if raw {
				host = fmt.Sprintf("b%d.test", i)
				set(row, host, "deny all;")
				check(host, 503, row.key)
			}
		})
	}
}

// namedByProblem reports whether a Problem names an option.
func namedByProblem(p *proxy.Proxy, row optionRow) bool {
	for _, problem := range p.Table().Problems {
		if row.wide && strings.Contains(problem.Message, "option "+row.key+" ") || !row.wide && strings.Contains(problem.Message, "/"+row.key+" ") {
			return true
		}
	}
	return false
}
