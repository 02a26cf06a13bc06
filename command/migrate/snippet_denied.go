package migrate

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
	"quayside.io/proxy/snippet"
)

// deniedPaths are the lines of all that a snippet refuses, and whether that is the same:
// single paths that it answers otherwise come first in nginx.
func deniedPaths(list []snippet.Denial, beside []place, meta Meta, spec networkingv1.IngressSpec) (lines []string, same bool) {
	patterns := strings.EqualFold(meta.Annotations[route.OwnPrefix+"use-regex"], "true") || meta.Annotations[route.OwnPrefix+"rewrite-target"] != ""
	paths := snippet.PathsOf(spec)
	for _, l := range list {
		if !l.Wins(paths, patterns) || slices.ContainsFunc(beside, func(p place) bool { return l.About(p.path) }) {
			return nil, false
		}
		lines = append(lines, l.String())
	}
	return lines, true
}

// denialIn returns what a directive refuses, if that is all that it does. One path alone is a
// place, see placeIn.
func denialIn(d *nginxconf.Directive) (l snippet.Denial, ok bool) {
	l, ok = snippet.DeniedPath(d)
	return l, ok && l.Modifier != "="
}
