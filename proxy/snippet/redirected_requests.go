package snippet

import (
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/nginxconf"
)

// RedirectedRequest returns the line of redirected-requests that does what a return, a rewrite,
// an if or a location of one path does, if it sends clients elsewhere and does nothing else.
func RedirectedRequest(d *nginxconf.Directive) (line string, ok bool) {
	switch {
	case d.Name() == "if":
		return redirectIf(d)
	case d.Name() == "location":
		return redirectAt(d)
	case d.Block != nil:
		return "", false
	case d.Name() == "return":
		return redirectLine(forAll)(returnedTo(d.Args()))
	case d.Name() == "rewrite" && len(d.Args()) > 0:
		pattern, ok := inLine(d.Args()[0])
		line, redirects := redirectLine("$uri ~ " + pattern)(rewrittenTo(d.Args()))
		return line, ok && redirects
	}
	return "", false
}

// RewrittenPath returns the line of rewritten-paths that does what a rewrite in the place of an
// Ingress does, if nginx goes on from there to the backend.
func RewrittenPath(d *nginxconf.Directive) (line string, ok bool) {
	args := d.Args()
	if d.Name() != "rewrite" || len(args) != 3 || args[2] != "break" || isAddress(args[1]) || strings.ContainsAny(args[1], " \t\r\n") {
		return "", false
	}
	pattern, ok := inLine(args[0])
	return pattern + " " + args[1], ok
}

// forAll is a condition that always holds.
const forAll = "$uri ~ ^"

// IsForAll reports whether a line of redirected-requests is about every request.
func IsForAll(line string) bool { return strings.HasPrefix(line, forAll+" ") }

// redirectLine returns what makes a line of a condition.
func redirectLine(condition string) func(target string, status int) (line string, ok bool) {
	return func(target string, status int) (string, bool) {
		if target == "" || strings.ContainsAny(target, " \t\r\n") {
			return "", false
		}
		line := condition + " " + target
		if status != 302 {
			line += " " + strconv.Itoa(status)
		}
		return line, true
	}
}

// redirectAt is about a location.
func redirectAt(d *nginxconf.Directive) (line string, ok bool) {
	args := d.Args()
	if len(args) != 2 || args[0] != "=" || !strings.HasPrefix(args[1], "/") || len(d.Block) != 1 || d.Block[0].Block != nil || d.Block[0].Name() != "return" {
		return "", false
	}
	path, ok := inLine(args[1])
	line, redirects := redirectLine("$uri = " + path)(returnedTo(d.Block[0].Args()))
	return line, ok && redirects
}

// redirectIf is about an if. What is rewritten in it has to be every path.
func redirectIf(d *nginxconf.Directive) (line string, ok bool) {
	condition, _, ok := conditionOf(d)
	if !ok || len(d.Block) != 1 || d.Block[0].Block != nil {
		return "", false
	}
	switch inner := &d.Block[0]; inner.Name() {
	case "return":
		return redirectLine(condition)(returnedTo(inner.Args()))
	case "rewrite":
		target, status := rewrittenTo(inner.Args())
		switch {
		case target == "":
			return "", false
		case slices.Contains([]string{"^", ".*", "^.*", "^.*$", "^/"}, inner.Args()[0]):
			if strings.Contains(target, "$1") { // none of the condition's
				return "", false
			}
		case slices.Contains([]string{"^(.*)$", "^(.*)", "(.*)"}, inner.Args()[0]):
			target = strings.ReplaceAll(target, "$1", "$uri")
		case slices.Contains([]string{"^/(.*)$", "^/(.*)"}, inner.Args()[0]):
			target = strings.ReplaceAll(target, "/$1", "$uri")
			if strings.Contains(target, "$1") {
				return "", false
			}
		default:
			return "", false
		}
		return redirectLine(condition)(target, status)
	}
	return "", false
}

// returnedTo is where a return sends clients, or nowhere.
func returnedTo(args []string) (target string, status int) {
	switch len(args) {
	case 1:
		if isAddress(args[0]) { // and no path, which nginx takes for a status
			return args[0], 302
		}
	case 2:
		status, err := strconv.Atoi(args[0])
		if err == nil && slices.Contains([]int{301, 302, 303, 307, 308}, status) {
			return args[1], status
		}
	}
	return "", 0
}

// rewrittenTo is where a rewrite sends clients, with their query behind it as nginx adds it,
// or nowhere.
func rewrittenTo(args []string) (target string, status int) {
	if len(args) < 2 || len(args) > 3 {
		return "", 0
	}
	switch flag := strings.Join(args[2:], ""); {
	case flag == "permanent":
		status = 301
	case flag == "redirect" || slices.Contains([]string{"", "last", "break"}, flag) && isAddress(args[1]):
		status = 302
	default:
		return "", 0
	}
	target, drops := strings.CutSuffix(args[1], "?")
	switch {
	case drops:
	case strings.Contains(target, "?"): // nginx adds "&" then, where there is a query
		return "", 0
	default:
		target += "$is_args$args"
	}
	return target, status
}

// isAddress reports whether nginx takes text for one, and not for a path.
func isAddress(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "$scheme")
}
