package snippet

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// DeniedRequest returns the line of denied-requests that does what an if does, if it refuses
// and does nothing else.
func DeniedRequest(d *nginxconf.Directive) (line string, ok bool) {
	if d.Name() != "if" || slices.ContainsFunc(d.Block, nginxconf.IsNamed("deny")) { // which nginx takes in none
		return "", false
	}
	condition, of, ok := conditionOf(d)
	status := refusalIn(d.Block)
	if !ok || status == 0 || of.IsPath() {
		return "", false
	}
	return withStatus(condition, status), true
}

// conditionOf returns the condition of an if, as lines of options have it, and its variable.
func conditionOf(d *nginxconf.Directive) (text string, of filter.Variable, ok bool) {
	variable, comparison, value := Condition(d.Args())
	if comparison == "" { // whether there is anything, and nginx takes 0 for nothing
		comparison, value = "!~", "^0?$"
	}
	of, unknown := filter.ParseVariable(variable)
	if strings.HasSuffix(comparison, "=") && strings.Contains(value, "$") { // which lines have as text
		return "", of, false
	}
	if unknown != nil || !slices.Contains([]string{"=", "!=", "~", "!~", "~*", "!~*"}, comparison) {
		return "", of, false
	}
	value, ok = inLine(value)
	return variable + " " + comparison + " " + value, of, ok
}

// inLine returns a value as lines have it, and false where none can.
func inLine(value string) (string, bool) {
	if value == "" || strings.ContainsAny(value, " \t") || value[0] == '"' {
		value = `"` + value + `"`
	}
	return value, !strings.ContainsAny(value, "\r\n")
}

// Condition takes apart what stands in the parentheses of an if.
func Condition(args []string) (variable, operator, value string) {
	words := slices.Clone(args)
	if len(words) > 0 {
		words[0] = strings.TrimPrefix(words[0], "(")
		words[len(words)-1] = strings.TrimSuffix(words[len(words)-1], ")")
	}
	if len(words) > 1 && words[0] == "" {
		words = words[1:]
	}
	if len(words) > 1 && words[len(words)-1] == "" {
		words = words[:len(words)-1]
	}
	words = append(words, "", "", "")
	return words[0], words[1], words[2]
}

// refusalIn returns the status of a block that refuses and does nothing else, or 0.
func refusalIn(block []nginxconf.Directive) (status int) {
	denies := false
	for i := range block {
		inner := &block[i]
		switch text := strings.Join(inner.Words, " "); {
		case inner.Block != nil:
			return 0
		case text == "deny all":
			denies = true
		case inner.Name() == "return" && status == 0: // it comes before deny, wherever it stands
			if status = returned(inner.Args()); status == 0 {
				return 0
			}
		case !IsOfLog(text):
			return 0
		}
	}
	if denies && status == 0 {
		return 403
	}
	return status
}

// IsOfLog reports whether a directive only keeps something out of a log.
func IsOfLog(text string) bool { return text == "access_log off" || text == "log_not_found off" }

// returned is the status of a return that refuses, as it is here, or 0.
func returned(args []string) int {
	if len(args) != 1 {
		return 0
	}
	if args[0] == "444" { // nothing at all
		return 403
	}
	status, err := strconv.Atoi(args[0])
	if _, known := filter.DeniedStatuses()[status]; err != nil || !known {
		return 0
	}
	return status
}

// withStatus returns a line of denied-paths or denied-requests, whose status is 403 by default.
func withStatus(line string, status int) string {
	if status == 403 {
		return line
	}
	return line + " " + strconv.Itoa(status)
}

// access returns the lists of addresses that do the same as a list of directives, and the other
// directives. nginx asks them in their order, so it reports false where that is not first who
// is refused, then who passes, and then all.
func access(list []nginxconf.Directive) (lists []Setting, left []nginxconf.Directive, ok bool) {
	var deny, allow []string
	last := "" // what becomes of all others
	for _, d := range list {
		switch name, args := d.Name(), d.Args(); {
		case name != "allow" && name != "deny":
			left = append(left, d)
		case last != "" || len(args) != 1 || d.Block != nil:
			return nil, nil, false
		case args[0] == "all":
			last = name
		case !IsPrefix(args[0]) || name == "deny" && len(allow) > 0:
			return nil, nil, false
		case name == "deny":
			deny = append(deny, args[0])
		default:
			allow = append(allow, args[0])
		}
	}
	if last == "deny" && len(allow) == 0 {
		deny = []string{"0.0.0.0/0", "::/0"}
	}
	for _, o := range []Setting{{"denylist-source-range", strings.Join(deny, ",")}, {"allowlist-source-range", strings.Join(allow, ",")}} {
		if o.Value != "" {
			lists = append(lists, o)
		}
	}
	return lists, left, last == "deny" || len(allow) == 0
}

// IsPrefix reports whether s is an address, or a block of them.
func IsPrefix(s string) bool {
	_, err := netip.ParsePrefix(s)
	_, err2 := netip.ParseAddr(s)
	return err == nil || err2 == nil
}
