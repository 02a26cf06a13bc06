package filter

import (
	"regexp"
	"testing"
)

// A rewrite of an adopted class reads %2F as a slash, and where its pattern is not
// found so, the path as it is.
func TestRewriteDecodesSlashes(t *testing.T) {
	for _, c := range []struct{ pattern, path, decoded, literal string }{
		{"(?i)^/a(/|$)(.*)", "/a%2Fb%2F/c", "/b/c", ""},
		{"(?i)^/a(/|$)(.*)", "/a/b%2F%2Fc", "/b/c", "/b%2F%2Fc"},
		{"(?i)^/a(/)([^/]+)$", "/a/b%2Fc", "/b%2Fc", "/b%2Fc"},
		{"(?i)^/a(/|$)(.*)", "/a/b", "/b", "/b"},
	} {
		for decode, want := range map[bool]string{true: c.decoded, false: c.literal} {
			s := &Settings{Rewrite: &Rewrite{Pattern: regexp.MustCompile(c.pattern), Target: text("/$2"), Decode: decode}}
			if want == "" {
				want = c.path
			}
			if ex := pass(s, ask("GET a "+c.path)); string(ex.Request.Target) != want {
				t.Errorf("%s in %s, decoded %v: %s, want %s", c.pattern, c.path, decode, ex.Request.Target, want)
			}
		}
	}
}
