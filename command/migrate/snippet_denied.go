package migrate

import (
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
	"quayside.io/proxy/snippet"
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
	l.status = snippet.RefusalIn(d.Block)
	return l, l.status > 0
}

// String is the line.
func (l denial) String() string {
	return snippet.WithStatus(strings.TrimLeft(l.modifier+" "+l.what, " "), l.status)
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
