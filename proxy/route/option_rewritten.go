package route

import (
	"errors"
	"slices"
	"strings"

	"quayside.io/proxy/filter"
)

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
