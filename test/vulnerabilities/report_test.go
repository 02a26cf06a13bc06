package main

import (
	"strings"
	"testing"
)

// What is called counts, by one line for each entry, unless it has an answer; an answer that
// nobody asks for counts, too.
func TestReport(t *testing.T) {
	const said = `{"config": {"scanner_name": "govulncheck"}}
{"osv": {"id": "GO-1", "summary": "Crash of a"}} {"osv": {"id": "GO-2", "summary": "Crash of b"}} {"osv": {"id": "GO-3"}} {"osv": {"id": "GO-4"}}
{"finding": {"osv": "GO-2", "fixed_version": "v1.2.0", "trace": [{"module": "b.test", "version": "v1.1.0"}]}}
{"finding": {"osv": "GO-2", "fixed_version": "v1.2.0", "trace": [{"module": "b.test", "version": "v1.1.0", "package": "b.test/b", "function": "Do"}, {"module": "quayside.io"}]}}
{"finding": {"osv": "GO-2", "fixed_version": "v1.2.0", "trace": [{"module": "b.test", "version": "v1.1.0", "package": "b.test/b", "function": "Again"}]}}
{"finding": {"osv": "GO-3", "trace": [{"module": "c.test", "version": "v1.0.0", "package": "c.test/c"}]}}
{"finding": {"osv": "GO-4", "trace": [{"module": "d.test", "version": "v1.0.0", "package": "d.test", "function": "Do"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.26.10", "trace": [{"module": "stdlib", "version": "v1.26.8", "package": "net/http", "function": "Get"}]}}
`
	entries, err := called(strings.NewReader(said))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	open := report(&out, entries, map[string]string{"GO-4": "it is not so", "GO-9": "it was once"})
	const want = `GO-1: Crash of a
  stdlib v1.26.8, called: net/http.Get
  build with go1.26.10: go mod edit -toolchain=go1.26.10; https://pkg.go.dev/vuln/GO-1
GO-2: Crash of b
  b.test v1.1.0, called: b.test/b.Do
  go get b.test@v1.2.0; https://pkg.go.dev/vuln/GO-2
GO-4 (d.test): answered: it is not so
GO-9 has an answer in test/vulnerabilities/answers.go, and does not concern us: delete it
`
	if out.String() != want || open != 3 {
		t.Errorf("%d open:\n%s, want\n%s", open, out.String(), want)
	}
	if _, err := called(strings.NewReader(`{"osv": `)); err == nil {
		t.Error("half of an output is taken")
	}
}
