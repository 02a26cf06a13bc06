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
		return returnedTo(d.Args()).line(forAll)
	case d.Name() == "rewrite" && len(d.Args()) > 0:
		pattern, ok := inLine(d.Args()[0])
		line, redirects := rewrittenTo(d.Args()).line("$uri ~ " + pattern)
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

// IsForAll reports whether a line is about every request.
func IsForAll(line string) bool { return strings.HasPrefix(line, forAll+" ") }

// redirection is where clients are sent; the zero value is nowhere.
type redirection struct {
	target string
	status int
}

// line is the line of a condition.
func (r redirection) line(condition string) (line string, ok bool) {
	if r.target == "" || strings.ContainsAny(r.target, " \t\r\n") {
		return "", false
	}
	line = condition + " " + r.target
	if r.status != 302 {
		line += " " + strconv.Itoa(r.status)
	}
	return line, true
}

// redirectAt is about a location.
func redirectAt(d *nginxconf.Directive) (line string, ok bool) {
	condition, ok := placeOf(d)
	if !ok || len(d.Block) != 1 || d.Block[0].Block != nil || d.Block[0].Name() != "return" {
		return "", false
	}
	return returnedTo(d.Block[0].Args()).line(condition)
}

// placeOf is the condition of a location of one path.
func placeOf(d *nginxconf.Directive) (condition string, ok bool) {
	args := d.Args()
	if len(args) != 2 || args[0] != "=" || !strings.HasPrefix(args[1], "/") {
		return "", false
	}
	path, ok := inLine(args[1])
	return "$uri = " + path, ok
}

// redirectIf is about an if. What is rewritten in it has to be every path.
func redirectIf(d *nginxconf.Directive) (line string, ok bool) {
	condition, _, ok := conditionOf(d)
	if !ok || len(d.Block) != 1 || d.Block[0].Block != nil {
		return "", false
	}
	switch inner := &d.Block[0]; inner.Name() {
	case "return":
		return returnedTo(inner.Args()).line(condition)
	case "rewrite":
		to := rewrittenTo(inner.Args())
		switch {
		case to.target == "":
			return "", false
		case slices.Contains([]string{"^", ".*", "^.*", "^.*$", "^/"}, inner.Args()[0]):
			if strings.Contains(to.target, "$1") { // none of the condition's
				return "", false
			}
		case slices.Contains([]string{"^(.*)$", "^(.*)", "(.*)"}, inner.Args()[0]):
			to.target = strings.ReplaceAll(to.target, "$1", "$uri")
		case slices.Contains([]string{"^/(.*)$", "^/(.*)"}, inner.Args()[0]):
			to.target = strings.ReplaceAll(to.target, "/$1", "$uri")
			if strings.Contains(to.target, "$1") {
				return "", false
			}
		default:
			return "", false
		}
		return to.line(condition)
	}
	return "", false
}

// returnedTo is where a return sends clients, or nowhere.
func returnedTo(args []string) redirection {
	switch len(args) {
	case 1:
		if isAddress(args[0]) { // and no path, which nginx takes for a status
			return redirection{args[0], 302}
		}
	case 2:
		status, err := strconv.Atoi(args[0])
		if err == nil && slices.Contains([]int{301, 302, 303, 307, 308}, status) {
			return redirection{args[1], status}
		}
	}
	return redirection{}
}

// rewrittenTo is where a rewrite sends clients, with their query behind it as nginx adds it,
// or nowhere.
func rewrittenTo(args []string) (to redirection) {
	if len(args) < 2 || len(args) > 3 {
		return to
	}
	switch flag := strings.Join(args[2:], ""); {
	case flag == "permanent":
		to.status = 301
	case flag == "redirect" || slices.Contains([]string{"", "last", "break"}, flag) && isAddress(args[1]):
		to.status = 302
	default:
		return to
	}
	target, drops := strings.CutSuffix(args[1], "?")
	switch {
	case drops:
	case strings.Contains(target, "?"): // nginx adds "&" then, where there is a query
		return to
	default:
		target += "$is_args$args"
	}
	to.target = target
	return to
}

// isAddress reports whether nginx takes text for one, and not for a path.
func isAddress(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "$scheme")
}
