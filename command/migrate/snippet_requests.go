package migrate

import (
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/filter"
)

// deniedRequest returns the line of denied-requests that does what an if does, if it refuses
// and does nothing else.
func deniedRequest(d *directive) (line string, ok bool) {
	if d.name() != "if" {
		return "", false
	}
	variable, comparison, value := condition(d.args())
	if comparison == "" { // whether there is anything, and nginx takes 0 for nothing
		comparison, value = "!~", "^0?$"
	}
	status := 0
	for i := range d.block {
		switch inner := &d.block[i]; {
		case inner.name() == "return" && status == 0:
			status = returned(inner.args())
		case !isOfLog(strings.Join(inner.words, " ")):
			return "", false
		}
	}
	_, unknown := filter.ParseVariable(variable)
	if status == 0 || unknown != nil || !slices.Contains([]string{"=", "!=", "~", "!~", "~*", "!~*"}, comparison) || strings.ContainsAny(value, "\r\n") {
		return "", false
	}
	if value == "" || strings.ContainsAny(value, " \t") || value[0] == '"' {
		value = `"` + value + `"`
	}
	line = variable + " " + comparison + " " + value
	if status != 403 {
		line += " " + strconv.Itoa(status)
	}
	return line, true
}

// refuses has denied-requests say which requests the snippet refuses, of the places beside,
// too: nginx asks before it looks for one. It reports whether that is the same, which it is
// not behind a rewrite: directives of both are obeyed in their order.
func (r *replacement) refuses(list []directive) bool {
	if len(r.asked) == 0 {
		return true
	}
	name := func(name string) func(directive) bool {
		return func(d directive) bool { return d.name() == name }
	}
	first := slices.IndexFunc(list, name("rewrite"))
	if first >= 0 && slices.ContainsFunc(list[first:], name("if")) {
		return false
	}
	said := setting{"denied-requests", strings.Join(r.asked, "\n")}
	r.options = append(r.options, said)
	for i := range r.own {
		r.own[i].options = append(r.own[i].options, said)
	}
	return true
}
