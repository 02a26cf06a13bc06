package route

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// TestDecodedPatternsPassNoGuard asks hosts of an adopted class, whose paths are
// patterns, for oddly spelled paths. The route is that of the path letter by letter
// if it guards, else that of the path as nginx decodes it; and the guard of the loose
// reading is met whatever the route is.
func TestDecodedPatternsPassNoGuard(t *testing.T) {
	// "/a/" is not among them: beside "/a" it is the same place, and the older has it.
	patterns := []string{"/", "/a", "/a/b", "/a/[^/]+", "/a/[^/]+$", "/a(/|$)(.*)", "/a/.*/b", "/[a-z]+%2Fb", "/a;x", "/.*b"}
	parts := []string{"/", "a", "b", "%2F", "%2f", "%5C", ";x", "//", "A", "%61", "x"}
	others := newCrime().others
	rapid.Check(t, func(t *rapid.T) {
		c := others
		guarded := map[string]bool{}
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 1, 4, rapid.ID).Draw(t, "patterns")
		for i, pattern := range chosen {
			given := map[string]string{NginxPrefix + "use-regex": "true"}
			if guarded[pattern] = rapid.Bool().Draw(t, "guarded"); guarded[pattern] {
				given[NginxPrefix+"whitelist-source-range"] = "10.0.0.0/8"
			}
			ing, class := fuzzIngress("n", "decoded.test", given, pattern), "nginx"
			ing.Name, ing.Spec.IngressClassName = fmt.Sprint("i", i), &class
			c = c.With(ing)
		}
		table := Compile(c, nil, crimeOptions())
		slices.SortFunc(chosen, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
		first := func(path string) string { // the twin: the longest pattern that matches
			for _, pattern := range chosen {
				if regexp.MustCompile("(?i)^" + pattern).MatchString(path) {
					return pattern
				}
			}
			return ""
		}
		r := &exchange.Request{Host: []byte("decoded.test")}
		path, ok := Normalize(nil, []byte("/"+strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 6).Draw(t, "path"), "")))
		if !ok {
			t.Skip("answered 400")
		}
		r.Path = path
		literal := first(string(path))
		decoded := first(regexp.MustCompile("/+").ReplaceAllString(strings.ReplaceAll(string(path), "%2F", "/"), "/"))
		loose := first(string(filter.AppendLoose(nil, path)))
		want := decoded
		if guarded[literal] {
			want = literal
		}
		found, guard := table.Match(r)
		if got := pathOf(found); got != want {
			t.Fatalf("%s leads to %q, want %q", path, got, want)
		}
		if guarded[loose] && loose != want && pathOf(guard) != loose {
			t.Fatalf("%s leads to %q past the guard of %q", path, want, loose)
		}
	})
}

func pathOf(r *Route) string {
	if r == nil {
		return ""
	}
	return r.Path
}

// Patterns of adopted classes cost no allocation, nor do paths that are decoded.
func TestDecodingDoesNotAllocate(t *testing.T) {
	ing, class := fuzzIngress("n", "decoded.test", map[string]string{NginxPrefix + "rewrite-target": "/$2"}, "/a(/|$)(.*)"), "nginx"
	ing.Spec.IngressClassName = &class
	table := Compile(newCrime().others.With(ing), nil, crimeOptions())
	r := &exchange.Request{Host: []byte("decoded.test"), Path: []byte("/a%2Fb")}
	if n := testing.AllocsPerRun(100, func() { table.Match(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if found, _ := table.Match(r); found == nil || !found.Filters.Rewrite.Decode {
		t.Errorf("found %+v", found)
	}
}
