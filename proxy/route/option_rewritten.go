package route

import (
	"errors"
	"slices"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

// parseRewriteTarget reads what takes the place of a path.
func parseRewriteTarget(s *settings, value string) error {
	if _, err := parseText(value); err != nil {
		return err
	}
	to, err := filter.ParseTemplate(value)
	if s.rewrite = nil; err == nil && value != "" {
		s.rewrite = to
	}
	return err
}

// rewrites reports whether a path is rewritten. As in ingress-nginx one is not that is the target
// itself: "/" for the path "/" is written in many an Ingress, and leaves all that is asked for
// alone. Without use-regex what is below "/a" becomes that all the same, since there is a location
// for the path "/a/".
func (s *settings) rewrites(path string) bool {
	return s.rewrite != nil && !(s.isTarget(path) && (s.useRegex || strings.HasSuffix(path, "/")))
}

// isTarget reports whether a path is what all that match it become.
func (s *settings) isTarget(path string) bool {
	to, fixed := s.rewrite.Text()
	return fixed && to == path
}

// patterns reports whether one of the paths of an Ingress may be a pattern.
func (s *settings) patterns(paths []snippet.Path) bool {
	return s.useRegex || slices.ContainsFunc(paths, func(p snippet.Path) bool { return s.rewrites(p.Path) })
}

// parseRewrittenPaths reads lines of what nginx's rewrite says: a pattern, perhaps in quotes,
// and what replaces the path.
func parseRewrittenPaths(s *settings, value string) error {
	list, err := parseLines(value, parseRewrittenPath)
	s.filters.RewrittenPaths = slices.Concat(s.filters.RewrittenPaths, list)
	return err
}

func parseRewrittenPath(line string) (r filter.Rewrite, err error) {
	pattern, target := cutQuoted(line)
	if target == "" || strings.ContainsAny(target, " \t") {
		return r, errors.New("it is not a pattern, and a path that replaces those in which it is found")
	}
	if !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "$") || strings.HasPrefix(target, "$scheme") {
		return r, errors.New("what replaces a path begins with a slash or a variable; redirected-requests sends requests elsewhere")
	}
	if _, err := parseText(target); err != nil {
		return r, err
	}
	if r.Target, err = filter.ParseTemplate(target); err != nil {
		return r, err
	}
	r.Decode = true // as nginx reads paths
	r.Pattern, err = compileFound(pattern, false)
	return r, err
}
