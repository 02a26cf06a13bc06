package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/filter"
)

// maxLines is how many lines denied-paths, denied-requests, redirected-requests and
// rewritten-paths may have, each.
const maxLines = 64

// parseDeniedPaths reads lines of what nginx's locations say: a path, or a modifier and a
// path or pattern, and perhaps a status.
func parseDeniedPaths(s *settings, value string) error {
	list, err := parseLines(value, parseDeniedPath)
	s.filters.DeniedPaths = slices.Concat(s.filters.DeniedPaths, list)
	return err
}

// parseDeniedRequests reads lines of what nginx asks with if: a variable, a comparison and a
// value, perhaps in quotes, and perhaps a status.
func parseDeniedRequests(s *settings, value string) error {
	list, err := parseLines(value, s.parseDeniedRequest)
	s.filters.DeniedRequests = slices.Concat(s.filters.DeniedRequests, list)
	return err
}

// parseLines reads a list of which each line stands for itself.
func parseLines[T any](value string, parse func(line string) (T, error)) (list []T, err error) {
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		d, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", line, err)
		}
		if list = append(list, d); len(list) > maxLines {
			return nil, fmt.Errorf("there are more than %d lines", maxLines)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("it has no line")
	}
	return list, nil
}

func parseDeniedPath(line string) (d filter.DeniedPath, err error) {
	words, modifier := strings.Fields(line), ""
	if slices.Contains([]string{"=", "~", "~*"}, words[0]) {
		modifier, words = words[0], words[1:]
	}
	if len(words) == 0 || len(words) > 2 {
		return d, errors.New("it is not a path, or one of =, ~ and ~* and what is behind it, and perhaps a status")
	}
	if d.Status, err = parseDeniedStatus(strings.Join(words[1:], "")); err != nil {
		return d, err
	}
	if insensitive := modifier == "~*"; modifier == "~" || insensitive {
		d.Pattern, err = compileFound(words[0], insensitive)
		return d, err
	}
	path, ok := Normalize(nil, []byte(words[0]))
	if !ok || strings.Contains(words[0], "?") {
		return d, fmt.Errorf("%.80q is not a path", words[0])
	}
	d.Path, d.Exact = string(path), modifier == "="
	return d, nil
}

func (s *settings) parseDeniedRequest(line string) (d filter.DeniedRequest, err error) {
	condition, status, err := s.parseCondition(line)
	if err != nil {
		return d, err
	}
	if condition.Of.IsPath() {
		return d, errors.New("denied-paths is about paths")
	}
	d.Condition = condition
	d.Status, err = parseDeniedStatus(status)
	return d, err
}

// parseCondition reads a variable, a comparison and a value, and returns what stands behind.
func (s *settings) parseCondition(line string) (c filter.Condition, rest string, err error) {
	of, text := cutWord(line)
	comparison, text := cutWord(text)
	value, rest := cutQuoted(text)
	comparison, c.Not = strings.CutPrefix(comparison, "!")
	known := slices.Contains([]string{"=", "~", "~*"}, comparison)
	if text == "" || !known {
		return c, "", errors.New("it does not begin with a variable, one of =, !=, ~, !~, ~* and !~*, and a value")
	}
	if c.Of, err = s.snippets.known.ParseVariable(of); err != nil {
		return c, "", err
	}
	if comparison == "=" {
		c.Text, err = parseText(value)
		return c, rest, err
	}
	c.Pattern, err = compileFound(value, comparison == "~*")
	return c, rest, err
}

// cutWord cuts the first word off, and the blanks behind it.
func cutWord(text string) (word, rest string) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimSpace(text[i:])
}

// cutQuoted is cutWord of what may stand in double quotes, up to the last.
func cutQuoted(text string) (word, rest string) {
	if inside, quoted := strings.CutPrefix(text, `"`); quoted {
		if end := strings.LastIndexByte(inside, '"'); end >= 0 {
			return inside[:end], strings.TrimSpace(inside[end+1:])
		}
	}
	return cutWord(text)
}

// compileFound compiles a pattern that is found anywhere.
func compileFound(text string, insensitive bool) (*regexp.Regexp, error) {
	if insensitive {
		text = "(?i)" + text
	}
	return filter.CompilePattern(text)
}

// parseDeniedStatus reads a status, by default 403.
func parseDeniedStatus(text string) (int, error) {
	status, err := strconv.Atoi(cmp.Or(text, "403"))
	if _, known := filter.DeniedStatuses()[status]; err != nil || !known {
		return 0, fmt.Errorf("%.20q is none of the statuses %s", text, listed(slices.Sorted(maps.Keys(filter.DeniedStatuses()))))
	}
	return status, nil
}

// listed is a list of statuses as messages have it.
func listed(statuses []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(statuses), " ", ", "), "[]")
}

// A location that refuses stands beside those of all Ingresses of a host in nginx. Here
// what one Ingress denies holds for all of its namespace, so that what another routes there
// is no way around it, and for nobody else's.

// maxDeniedTogether is how many different lines the Ingresses of a namespace may have on one
// host: each request of theirs is compared with all.
const maxDeniedTogether = 4 * maxLines

// takeDenied gathers what the Ingresses of each namespace deny together on the host, the
// oldest first. Where that is too much, nothing of theirs passes.
func (b *hostBuilder) takeDenied(parts []*part) {
	for _, c := range parts {
		r := c.anyRoute()
		if r == nil || r.Filters == nil || len(r.Filters.DeniedPaths) == 0 {
			continue
		}
		if b.denied == nil {
			b.denied = map[string]*deniedTogether{}
		}
		namespace := c.unit.ref.Namespace
		if b.denied[namespace] == nil {
			b.denied[namespace] = &deniedTogether{seen: map[deniedLine]struct{}{}}
		}
		if !b.denied[namespace].add(r.Filters.DeniedPaths) {
			b.told(c, RouteClosed, fmt.Sprintf("host %s: with those of others of its namespace, annotation %sdenied-paths comes to more than %d different lines, so every request to paths of these Ingresses gets a 403; say the same with fewer",
				c.host, OwnPrefix, maxDeniedTogether))
		}
	}
}

// deniedTogether is what the Ingresses of a namespace deny on a host.
type deniedTogether struct {
	list []filter.DeniedPath
	seen map[deniedLine]struct{}
}

// deniedLine tells one line from others.
type deniedLine struct {
	path, pattern string
	exact         bool
	status        int
}

// add reports whether there is room for more.
func (t *deniedTogether) add(more []filter.DeniedPath) bool {
	for _, d := range more {
		line := deniedLine{path: d.Path, exact: d.Exact, status: d.Status}
		if d.Pattern != nil {
			line.pattern = d.Pattern.String()
		}
		if _, again := t.seen[line]; again {
			continue
		}
		if len(t.seen) == maxDeniedTogether {
			t.list = []filter.DeniedPath{{Status: 403}} // whatever the path begins with
			return false
		}
		t.seen[line] = struct{}{}
		t.list = append(t.list, d)
	}
	return true
}

// sharesDenied reports whether what others of its namespace deny is denied on r, too.
func sharesDenied(r *Route) bool {
	return !r.isChallenge() || r.Filters != nil && len(r.Filters.DeniedPaths) > 0
}

// deny has r, which is a copy, deny these paths.
func (r *Route) deny(list []filter.DeniedPath) {
	r.guard(func(f *filter.Settings) { f.DeniedPaths = list })
}
