package route

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/snippet"
)

// denyHidden denies the paths that locations of nginx refuse, which stand under a key.
func (s *settings) denyHidden(key string, list []snippet.Denial) error {
	if len(list) == 0 {
		return nil
	}
	var lines []string
	for _, l := range list {
		lines = append(lines, l.String())
	}
	if err := parseDeniedPaths(s, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("its denied-paths: %w", err)
	}
	s.hidden, s.hiddenBy = slices.Concat(s.hidden, list), key
	return nil
}

// finishHidden closes a route where nginx would serve a path of the Ingress that its
// snippet refuses, since here it would be refused.
func (s *settings) finishHidden(r refs) *finding {
	if len(s.hidden) == 0 {
		return nil
	}
	paths := r.paths()
	for _, l := range s.hidden {
		if !l.Wins(paths, s.patterns(paths)) {
			f := s.close(s.hiddenBy, fmt.Sprintf("refuses %s, beside a path of the Ingress that nginx may prefer to that", l))
			f.message += SnippetHelp
			return &f
		}
	}
	return nil
}
