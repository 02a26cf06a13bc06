package route

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var writePage = flag.Bool("write-page", false, "write docs/ingress-nginx.md from the table of options")

// TestPageOfOptions keeps docs/ingress-nginx.md what the table says; `make
// generate` writes it.
func TestPageOfOptions(t *testing.T) {
	const path = "../../docs/ingress-nginx.md"
	want := pageOfOptions()
	if *writePage {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page is not that of the table; run make generate (-table +page):\n%s", diff)
	}
}

// The README says how many options act.
func TestReadmeCountsTheOptionsThatAct(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var annotations, keys int
	theirs := 0
	for _, o := range optionTable() {
		if o.ours {
			continue
		}
		theirs++
		if o.effect == applied {
			annotations++
		}
	}
	keysThere := 0
	for _, o := range globalTable() {
		if o.ours {
			continue
		}
		keysThere++
		if o.effect == applied {
			keys++
		}
	}
	flat := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{
		fmt.Sprintf("Of its %d annotations %d act", theirs, annotations),
		fmt.Sprintf("Of %d keys there %d act", keysThere, keys),
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}

func pageOfOptions() string {
	var b strings.Builder
	b.WriteString(`# Annotations of ingress-nginx

<!-- Made by "make generate" from the table of options in proxy/route. -->

Every key is read under ` + "`" + NginxPrefix + "` and `" + OwnPrefix + "`" + `; where an Ingress has both, ours wins.
What is not obeyed is told on the Ingress, as an Event and in ` + "`quayside status`" + `.

- **same**: it does what it does in ingress-nginx.
- **differs**: it acts, but not in all points alike.
- **closed**: it decides who may pass and is not obeyed yet, so every request gets a 503.
- **ours**: ingress-nginx does not have it.
- **told**: it has no effect yet, and the route serves without it.
- **accepted**: there is nothing to do here, so it is accepted in silence.

A value that is not understood has no effect and is told. Those marked with ! close the route instead,
since without them requests would pass a guard or reach another place than meant.

Scope is how far it reaches: each path of its Ingress (location), its Ingress as a whole, or all paths of its hosts,
those of other Ingresses too. Default is the value that ingress-nginx goes by where there is none. Risk is what the
author of an Ingress may do to others with it, as ingress-nginx grades it.

| key | scope | default | here | what it does | risk |
|---|---|---|---|---|---|
`)
	for _, o := range optionTable() {
		here := map[effect]string{applied: "same", noOp: "accepted", ignored: "told"}[o.effect]
		if o.differ != "" {
			here = "differs: " + o.differ
		}
		if o.ours {
			here = "ours"
		}
		if o.risk == riskCritical && o.effect != applied {
			here = neverExecuted("the route")
		}
		mark := ""
		if o.guard {
			mark = " !"
		}
		unset := ""
		if o.unset != "" {
			unset = "`" + o.unset + "`"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | %s | %s |\n", o.key, mark, o.scope, unset, here, strings.ReplaceAll(o.doc, "|", `\|`), o.risk)
	}
	b.WriteString(pageOfGlobalOptions())
	return b.String()
}

// neverExecuted says what raw configuration does to what it was meant for.
func neverExecuted(closed string) string {
	return "refused: never executed; it closes " + closed + " where it guards access, and is told elsewhere"
}

func pageOfGlobalOptions() string {
	var b strings.Builder
	b.WriteString(`
# The ConfigMap of ingress-nginx

The flag ` + "`--configmap NAMESPACE/NAME`" + ` of the proxy and of the controller names a ConfigMap with these keys, in the
chart ` + "`proxy.configMap`" + `, or their values in ` + "`proxy.config`" + `. It is read live. What it says holds for all classes, unless an
annotation says otherwise; the defaults, where they differ from doing nothing, are those of classes adopted
from ingress-nginx. What is not obeyed is told on the ConfigMap. Those marked with ! close every route where
their value is not understood.

| key | default there | here | what it does |
|---|---|---|---|
`)
	for _, o := range globalTable() {
		here := map[effect]string{applied: "same", noOp: "accepted", ignored: "told"}[o.effect]
		if o.differ != "" {
			here = "differs: " + o.differ
		}
		if o.ours {
			here = "ours"
		}
		if o.guards != nil && o.effect == ignored {
			here = neverExecuted("all routes")
		}
		mark, unset := "", ""
		if o.guard {
			mark = " !"
		}
		if o.unset != "" {
			unset = "`" + o.unset + "`"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", o.key, mark, unset, here, o.doc)
	}
	return b.String()
}
