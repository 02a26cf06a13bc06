package route_test

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"quayside.io/proxy/route"
)

// FuzzNormalize: whatever the target, the result is what it promises. The seeds
// are spellings that fooled proxies before.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		"/", "", "*", "a/b", "//", "/.", "/..", "/a/..", "/a/../..", "/a/./b/", "/a//b", "/%2e%2e/a", "/a/%2E./b",
		"/a%2Fb", "/a%2f..%2fb", "/..%5cb", "/a%5Cb", "/%252e%252e/", "/%25", "/%", "/%2", "/%zz", "/%00", "/a\x00", "/a\\b",
		"/a?b=/../c", "/a?b#c", "/a%3fb", "/a#b", "/a%23b", "/a;x=1/b", "/caf\xc3\xa9", "/%c3%a9", "/\x7f", "/%7f", "/%0d%0a", "/a/...", "/..a", "/a../b",
		"/.well-known/acme-challenge/x_Y-z", "///", "/a/b/../../..", "/a/b/../../../b", "/%2F", "/%2F..", "/.%2F", "/+%20",
		"/a/..;/b", "/a/..;x=1/b", "/.;/a", "/a/..%3b/b", "/a;../b", "/a//../b", "/a//b/../c", "/a/../b//c", "/a/..;",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, target []byte) {
		given := bytes.Clone(target)
		got, ok := route.Normalize([]byte("kept"), target)
		if !bytes.Equal(target, given) {
			t.Fatalf("Normalize(%q) changed its input to %q", given, target)
		}
		rest, kept := bytes.CutPrefix(got, []byte("kept"))
		if !kept {
			t.Fatalf("Normalize(%q) overwrote what dst held: %q", target, got)
		}
		if !ok {
			return
		}
		if bytes.IndexByte(target, '#') >= 0 {
			t.Fatalf("Normalize(%q) passes a fragment", target)
		}
		p := string(rest)
		if !strings.HasPrefix(p, "/") || strings.Contains(p, "//") || strings.ContainsAny(p, "\x00\\?#\x7f") {
			t.Fatalf("Normalize(%q) = %q", target, p)
		}
		for _, element := range strings.FieldsFunc(strings.NewReplacer("%2F", "/", "%5C", "/").Replace(p), func(r rune) bool { return r == '/' }) {
			element, _, _ = strings.Cut(element, ";")
			if element == "." || element == ".." {
				t.Fatalf("Normalize(%q) = %q hides a dot segment", target, p)
			}
		}
		again, ok := route.Normalize(nil, rest)
		if !ok || string(again) != p {
			t.Fatalf("Normalize(%q) = %q, and once more %q, %v", target, p, again, ok)
		}
		if len(p) > len(target) {
			t.Fatalf("Normalize(%q) = %q grew: dst would have to", target, p)
		}
		// Without escapes, path.Clean agrees, save for the slash at the end.
		plain, _, _ := strings.Cut(string(target), "?")
		if !strings.Contains(plain, "%") && strings.TrimSuffix(p, "/") != strings.TrimSuffix(path.Clean(plain), "/") {
			t.Fatalf("Normalize(%q) = %q, path.Clean says %q", target, p, path.Clean(plain))
		}
	})
}

func TestNormalizeRefuses(t *testing.T) {
	for _, target := range []string{
		"", "*", "a", "http://host/", "?x", "/..", "/a/../..", "/%2e%2e", "/a/..%2f", "/%2F..", "/..%5C", "/a%2f.%2fb",
		"/%", "/%1", "/%g0", "/%00", "/\x00", "/\\", "/a#b", "/a?#", "/a?b=1#&c", "/\n", "/\x7f",
		"/a/..;/b", "/a/..;x=1/b", "/a/.;/b", "/a/..%3b/b", "/a/%2e%2E;", "/a%2F..;%2fb", "/a//../b", "/a//./../b", "/a//b/../../c",
	} {
		if p, ok := route.Normalize(nil, []byte(target)); ok {
			t.Errorf("Normalize(%q) = %q, want a refusal", target, p)
		}
	}
}
