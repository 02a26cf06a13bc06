package route

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/filter"
)

// maxDenied is how many lines denied-paths may have.
const maxDenied = 64

// parseDeniedPaths reads lines of what nginx's locations say: a path, or a modifier and a
// path or pattern, and perhaps a status.
func parseDeniedPaths(s *settings, value string) error {
	var list []filter.DeniedPath
	for line := range strings.Lines(value) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		d, err := parseDenied(words)
		if err != nil {
			return fmt.Errorf("%.80q: %w", strings.TrimSpace(line), err)
		}
		if list = append(list, d); len(list) > maxDenied {
			return fmt.Errorf("there are more than %d lines", maxDenied)
		}
	}
	if len(list) == 0 {
		return errors.New("it has no line")
	}
	s.filters.DeniedPaths = list
	return nil
}

func parseDenied(words []string) (d filter.DeniedPath, err error) {
	d.Status = 403
	modifier := ""
	if slices.Contains([]string{"=", "~", "~*"}, words[0]) {
		modifier, words = words[0], words[1:]
	}
	if len(words) == 2 {
		d.Status, _ = strconv.Atoi(words[1])
	}
	_, known := filter.DeniedStatuses()[d.Status]
	switch {
	case len(words) == 0 || len(words) > 2:
		return d, errors.New("it is not a path, or one of =, ~ and ~* and what is behind it, and perhaps a status")
	case !known:
		return d, fmt.Errorf("%.20q is none of 403, 404 and 410", words[1])
	case modifier == "~":
		d.Pattern, err = compilePattern(words[0])
		return d, err
	case modifier == "~*":
		d.Pattern, err = compilePattern("(?i)" + words[0])
		return d, err
	}
	path, ok := Normalize(nil, []byte(words[0]))
	if !ok || strings.Contains(words[0], "?") {
		return d, fmt.Errorf("%.80q is not a path", words[0])
	}
	d.Path, d.Exact = string(path), modifier == "="
	return d, nil
}

// A location that refuses stands beside those of all Ingresses of a host in nginx. Here
// what one Ingress denies holds for all of its namespace, so that what another routes there
// is no way around it, and for nobody else's.

// deniedOf returns what the Ingresses of each namespace deny together on a host, nil for
// nothing, the oldest first.
func deniedOf(parts []*part) map[string][]filter.DeniedPath {
	var all map[string][]filter.DeniedPath
	for _, c := range parts {
		r := c.anyRoute()
		if r == nil || r.Filters == nil || len(r.Filters.DeniedPaths) == 0 {
			continue
		}
		if all == nil {
			all = map[string][]filter.DeniedPath{}
		}
		namespace := c.unit.ref.Namespace
		all[namespace] = slices.Concat(all[namespace], r.Filters.DeniedPaths)
	}
	return all
}

// sharesDenied reports whether what others of its namespace deny is denied on r, too.
func sharesDenied(r *Route) bool {
	return !r.isChallenge() || r.Filters != nil && len(r.Filters.DeniedPaths) > 0
}

// deny has r, which is a copy, deny these paths.
func (r *Route) deny(list []filter.DeniedPath) {
	r.guard(func(f *filter.Settings) { f.DeniedPaths = list })
}
