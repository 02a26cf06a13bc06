package migrate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
)

// denial is a location that refuses everybody, which a line of denied-paths does here. One
// path alone is a place, see placeIn.
type denial struct {
	modifier string // "", "~" or "~*"
	what     string // a path or a pattern
	status   int
}

// denialIn returns what a directive refuses, if that is all that it does.
func denialIn(d *nginxconf.Directive) (l denial, ok bool) {
	args := d.Args()
	if d.Name() != "location" || len(args) == 0 || len(args) > 2 {
		return denial{}, false
	}
	l.what = args[len(args)-1]
	if len(args) == 2 && args[0] != "^~" {
		l.modifier = args[0]
	}
	if !slices.Contains([]string{"", "~", "~*"}, l.modifier) || len(strings.Fields(l.what)) != 1 || l.modifier == "" && !strings.HasPrefix(l.what, "/") {
		return denial{}, false
	}
	l.status = refusalIn(d.Block)
	return l, l.status > 0
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
		case !isOfLog(text):
			return 0
		}
	}
	if denies && status == 0 {
		return 403
	}
	return status
}

// isOfLog reports whether a directive only keeps something out of a log.
func isOfLog(text string) bool { return text == "access_log off" || text == "log_not_found off" }

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

// String is the line.
func (l denial) String() string {
	return withStatus(strings.TrimLeft(l.modifier+" "+l.what, " "), l.status)
}

// withStatus returns a line of denied-paths or denied-requests, whose status is 403 by default.
func withStatus(line string, status int) string {
	if status == 403 {
		return line
	}
	return line + " " + strconv.Itoa(status)
}

// about reports whether path is refused.
func (l denial) about(path string) bool {
	if l.modifier == "" {
		return strings.HasPrefix(path, l.what)
	}
	pattern := l.what
	if l.modifier == "~*" {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	return err != nil || re.MatchString(path)
}

// wins reports whether nginx refuses what l says on the hosts of an Ingress: an Exact path
// comes before it, and where it is no pattern a longer path, and any that is one.
func (l denial) wins(meta Meta, spec networkingv1.IngressSpec) bool {
	patterns := strings.EqualFold(meta.Annotations[route.OwnPrefix+"use-regex"], "true") || meta.Annotations[route.OwnPrefix+"rewrite-target"] != ""
	if patterns && l.modifier == "" {
		return false
	}
	for at := range pathsOf(spec) {
		if (isExact(at) || l.modifier == "" && len(at.Path) > len(l.what)) && l.about(at.Path) {
			return false
		}
	}
	return true
}

// deniedPaths are the lines of all that a snippet refuses, and whether that is the same:
// single paths that it answers otherwise come first in nginx.
func deniedPaths(list []denial, beside []place, meta Meta, spec networkingv1.IngressSpec) (lines []string, same bool) {
	for _, l := range list {
		if !l.wins(meta, spec) || slices.ContainsFunc(beside, func(p place) bool { return l.about(p.path) }) {
			return nil, false
		}
		lines = append(lines, l.String())
	}
	return lines, true
}
