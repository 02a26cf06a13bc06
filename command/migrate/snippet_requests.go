package migrate

import (
	"slices"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// deniedRequest returns the line of denied-requests that does what an if does, if it refuses
// and does nothing else.
func deniedRequest(d *nginxconf.Directive) (line string, ok bool) {
	if d.Name() != "if" || slices.ContainsFunc(d.Block, nginxconf.IsNamed("deny")) { // which nginx takes in none
		return "", false
	}
	variable, comparison, value := condition(d.Args())
	if comparison == "" { // whether there is anything, and nginx takes 0 for nothing
		comparison, value = "!~", "^0?$"
	}
	status := refusalIn(d.Block)
	_, unknown := filter.ParseVariable(variable)
	if status == 0 || unknown != nil || !slices.Contains([]string{"=", "!=", "~", "!~", "~*", "!~*"}, comparison) || strings.ContainsAny(value, "\r\n") {
		return "", false
	}
	if value == "" || strings.ContainsAny(value, " \t") || value[0] == '"' {
		value = `"` + value + `"`
	}
	return withStatus(variable+" "+comparison+" "+value, status), true
}

// deniesRequests has denied-requests say which requests the snippet refuses, of the places beside,
// too: nginx asks before it looks for one. It reports whether that is the same, which it is
// not behind a rewrite: directives of both are obeyed in their order.
func (r *replacement) deniesRequests(list []nginxconf.Directive) bool {
	if len(r.requests) == 0 {
		return true
	}
	first := slices.IndexFunc(list, nginxconf.IsNamed("rewrite"))
	if first >= 0 && slices.ContainsFunc(list[first:], nginxconf.IsNamed("if")) {
		return false
	}
	said := setting{Key: "denied-requests", Value: strings.Join(r.requests, "\n")}
	r.options = append(r.options, said)
	for i := range r.own {
		r.own[i].options = append(r.own[i].options, said)
	}
	return true
}
