package filter

import (
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Patterns that are matched by hand find what package regexp finds.
func TestSimplePatternsAgainstRegexp(t *testing.T) {
	patterns := map[string]bool{ // simple?
		"^/api(/|$)(.*)": true, "(?i)^/api(/|$)(.*)": true, "(?i)^/(.*)": true, "^/a(/|$)": true, "^/(a|b)(.*)": false, "^(/|$)(/|$)(.*)": true,
		"^/a.b": false, "/api(/|$)(.*)": false, "^/a(.*)b": false, "^/a(.*?)": false, "(?s)^/a(.*)": false, "^/api/?(.*)": false, "(?i)^/sk(/|$)(.*)": true,
		"^/a(/|$)(.*)$": false, "(?m)^/a(/|$)(.*)": false,
	}
	parts := []string{"/", "a", "A", "api", "API", "b", "k", "sK", "\u212a", "\u017f", "\n", "x", "%2F"}
	for pattern, want := range patterns {
		re := regexp.MustCompile(pattern)
		s, whole := simplify(re), NewMatcher(re)
		if (s != nil) != want {
			t.Errorf("%s: simple %v, want %v", pattern, s != nil, want)
		}
		if s == nil {
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			var path string
			for _, part := range rapid.SliceOfN(rapid.SampledFrom(parts), 0, 6).Draw(t, "path") {
				path += part
			}
			if got, want := whole.Match([]byte(path)), re.MatchString(path); got != want {
				t.Fatalf("%s matches %q: %v, want %v", pattern, path, got, want)
			}
			var buf [20]int
			got, matches, ok := s.match(buf[:0], []byte(path))
			if !ok {
				return // asked of regexp
			}
			if !matches {
				got = nil
			}
			if want := re.FindSubmatchIndex([]byte(path)); !slices.Equal(got, want) {
				t.Fatalf("%s in %q: %v, want %v", pattern, path, got, want)
			}
		})
	}
}
