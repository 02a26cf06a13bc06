package route

import (
	"strconv"
	"strings"
	"testing"

	"quayside.io/cluster/ingressclass"
)

func TestUnhexIsStrconv(t *testing.T) {
	for c := range 256 {
		want := byte(0xff)
		if n, err := strconv.ParseUint(string(rune(c)), 16, 8); err == nil {
			want = byte(n)
		}
		if got := unhex(byte(c)); got != want {
			t.Errorf("unhex(%q) = %d, want %d", rune(c), got, want)
		}
	}
}

func TestLabelsOfNames(t *testing.T) {
	const letters, hyphen = "abcdefghijklmnopqrstuvwxyz0123456789", "-"
	for c := range 256 {
		r := string(rune(c))
		if got, want := validLabel(r), strings.Contains(letters, r); got != want {
			t.Errorf("validLabel(%q) = %v", r, got)
		}
		if got, want := validLabel("a"+r+"a"), strings.Contains(letters+hyphen, r); got != want {
			t.Errorf("validLabel(%q) = %v", "a"+r+"a", got)
		}
	}
	for label, want := range map[string]bool{"": false, "-a": false, "a-": false, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false} {
		if got := validLabel(label); got != want {
			t.Errorf("validLabel(%q) = %v", label, got)
		}
	}
}

// An empty value asks for nothing, whatever the key.
func TestEmptyValuesAreSilent(t *testing.T) {
	for _, o := range optionTable() {
		for _, prefix := range []string{NginxPrefix, OwnPrefix} {
			s, findings := optionsOf(optionTable, map[string]string{prefix + o.key: ""}, defaults(ingressclass.Class{}), nil)
			if len(findings) > 0 || s.closed != "" || s.dropped {
				t.Errorf("%s%s: %v, closed %q, dropped %v", prefix, o.key, findings, s.closed, s.dropped)
			}
		}
	}
}
