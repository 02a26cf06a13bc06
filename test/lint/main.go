// Command lint is the vet tool of this tree: all that `go vet` looks for and all that
// staticcheck does, by one walk over the packages.
//
//	go build -buildvcs=false -o bin/lint ./test/lint && go vet -vettool=bin/lint ./...
//
// The analyzers are staticcheck's own, and its comment lint:file-ignore holds, as lint:ignore
// does for what is unused. Where nothing is cached yet, its driver takes most of its time to
// learn what code of others does, which the checks hardly use: here code of others is asked for
// what is deprecated, and no more.
package main

import (
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/analysis/facts/directives"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

func main() {
	suite := slices.Clone(vet.Suite)
	for _, a := range slices.Concat(simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers) {
		suite = append(suite, a.Analyzer)
	}
	suite = append(suite, reporting(unused.Analyzer.Analyzer))
	for _, a := range suite {
		name(a)
	}
	spareOthers(suite, map[*analysis.Analyzer]bool{})
	unitchecker.Main(suite...)
}

// name makes an analyzer say with each finding who found it, and spare the files which ask for
// that: a driver does neither.
func name(a *analysis.Analyzer) {
	run := a.Run
	a.Requires = append(slices.Clip(a.Requires), directives.Analyzer)
	a.Run = func(pass *analysis.Pass) (any, error) {
		spared, report := sparedBy(pass, a.Name), pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			if !spared[pass.Fset.File(d.Pos)] {
				d.Message = fmt.Sprintf("%s (%s)", d.Message, a.Name)
				report(d)
			}
		}
		return run(pass)
	}
}

// sparedBy are the files with a comment //lint:file-ignore CHECK REASON.
func sparedBy(pass *analysis.Pass, check string) map[*token.File]bool {
	spared := map[*token.File]bool{}
	for _, d := range pass.ResultOf[directives.Analyzer].([]lint.Directive) {
		if d.Command == "file-ignore" && len(d.Arguments) > 1 && slices.Contains(strings.Split(d.Arguments[0], ","), check) {
			spared[pass.Fset.File(d.Directive.Pos())] = true
		}
	}
	return spared
}

// spareOthers has no code of others translated for the analyzers and for what they require. What
// never returns, as t.Fatal does, is still known of the standard library, from where it comes.
func spareOthers(all []*analysis.Analyzer, seen map[*analysis.Analyzer]bool) {
	for _, a := range all {
		if seen[a] {
			continue
		}
		seen[a] = true
		spareOthers(a.Requires, seen)
		if run := a.Run; translates(a) {
			a.Run = func(pass *analysis.Pass) (any, error) {
				switch {
				case !isOthers(pass.Pkg.Path()):
					return run(pass)
				case a.ResultType == nil:
					return nil, nil
				}
				return reflect.Zero(a.ResultType).Interface(), nil
			}
		}
	}
}

// translates reports whether an analyzer needs the code in the form that it is costly to bring
// it to.
func translates(a *analysis.Analyzer) bool {
	return a.Name == "buildir" || slices.ContainsFunc(a.Requires, translates)
}

// isOthers reports whether a package is neither ours nor of the standard library.
func isOthers(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "vendor/"), "/")
	return strings.Contains(first, ".") && first != "quayside.io"
}

// reporting is the analyzer of unused code, which leaves it to its driver to report what it finds.
// Go analyses a package together with its tests, so what those alone use is used.
func reporting(finds *analysis.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     finds.Name,
		Doc:      finds.Doc,
		Requires: []*analysis.Analyzer{finds},
		Run: func(pass *analysis.Pass) (any, error) {
			for _, o := range pass.ResultOf[finds].(unused.Result).Unused {
				pass.Report(analysis.Diagnostic{Pos: posOf(pass, o.Position), Message: fmt.Sprintf("%s %s is unused", o.Kind, o.Name)})
			}
			return nil, nil
		},
	}
}

// posOf is where a position is among the files of a package.
func posOf(pass *analysis.Pass, p token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.FileStart); file.Name() == p.Filename {
			return file.Pos(p.Offset)
		}
	}
	return token.NoPos
}
