package route

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// As in ingress-nginx, one Ingress with use-regex or rewrite-target turns all paths
// of its host into patterns, whoever they belong to: the longest text is tried
// first, of equal lengths the one that sorts last (so "/api/v1" comes before
// "/api/.*"), and only Exact paths come before them. They are matched without regard
// to case. Paths of our own classes that asked for nothing of the kind keep their
// meaning, and only take their place in that order.

// pathPattern is a path that asked to be a pattern: from its beginning, in any case.
func pathPattern(path string) (*regexp.Regexp, error) { return filter.CompilePattern("(?i)^" + path) }

// patternLike reports whether a path may be a pattern at all.
func patternLike(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// likelyPattern reports whether a path has what patterns are made of, and hardly any address has.
func likelyPattern(path string) bool {
	return strings.HasSuffix(path, "/*") || slices.ContainsFunc([]string{".*", ".+", "(/", "|", "^", "[", "\\", "$)"}, func(sign string) bool { return strings.Contains(path, sign) })
}

// patternsBy is what makes a path of that type a pattern.
func (b *unitBuilder) patternsBy(t networkingv1.PathType) string {
	if t == networkingv1.PathTypeExact && b.settings.useRegex {
		return "pathType: ImplementationSpecific"
	}
	return OwnPrefix + `use-regex: "true"`
}

// pattern is a path of a host where paths are patterns.
type pattern struct {
	route *Route
	re    *filter.Matcher // nil: a Prefix, by elements
	path  string          // then the prefix, without the slash at its end
}

func (p *pattern) matches(path reading) bool {
	switch {
	case p.re == nil:
		return isBelow(path.path, []byte(p.path))
	case p.route.nginx:
		return p.re.Match(path.pattern)
	}
	return p.re.Match(path.path)
}

// anyPattern reports whether r, or another for its place, asked to be a pattern.
func (r *Route) anyPattern() bool {
	for ; r != nil; r = r.otherwise {
		if r.pattern != nil {
			return true
		}
	}
	return false
}

// patternsOf splits the routes of a host where paths are patterns.
func patternsOf(routes []*Route) (exact []*Route, patterns []pattern) {
	for _, r := range routes {
		if r.Type == networkingv1.PathTypeExact {
			exact = append(exact, r)
			continue
		}
		p := pattern{route: r, path: strings.TrimSuffix(r.match, "/")}
		switch {
		case r.pattern != nil:
			p.re = filter.NewMatcher(r.pattern)
		case r.nginx:
			re := patternOf(r.Path)
			p.re = filter.NewMatcher(re)
			if r.Filters != nil && len(r.Filters.Scripts) > 0 { // to which it is a pattern, too
				n := *r
				n.pattern, p.route = re, &n
			}
		}
		patterns = append(patterns, p)
	}
	slices.SortStableFunc(patterns, func(a, b pattern) int {
		return cmp.Or(cmp.Compare(len(b.route.Path), len(a.route.Path)), strings.Compare(b.route.Path, a.route.Path))
	})
	return exact, patterns
}

// patternOf returns the pattern of a path, or of what it says letter by letter if
// it is none.
func patternOf(path string) *regexp.Regexp {
	if re, err := pathPattern(path); err == nil {
		return re
	}
	return regexp.MustCompile("(?i)^" + regexp.QuoteMeta(path))
}

// literalPrefix is what everything that a pattern matches begins with, even if the
// pattern is of a dialect that RE2 refuses.
func literalPrefix(path string) string {
	if strings.Contains(path, "|") {
		return "/"
	}
	i := strings.IndexAny(path, `\.+*?()[]{}^$`)
	if i < 0 {
		return path
	}
	if i > 1 && strings.IndexByte("*?{", path[i]) >= 0 {
		i-- // what it repeats may not be there at all
	}
	return cmp.Or(path[:i], "/")
}

// matchPattern returns the route of the first pattern that path matches, or nil.
func (h *host) matchPattern(path reading, req *exchange.Request) *Route {
	for i := range h.patterns {
		if p := &h.patterns[i]; p.matches(path) {
			if r := p.route.choose(req); r != nil {
				return r
			}
		}
	}
	return nil
}
