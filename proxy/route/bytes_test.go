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

// An empty value asks for nothing, whatever the key, but for lists of addresses: ingress-nginx lets
// nobody pass then.
func TestEmptyValuesAreSilent(t *testing.T) {
	for _, o := range optionTable() {
		for _, prefix := range []string{NginxPrefix, OwnPrefix} {
			s, findings := optionsOf(optionTable, map[string]string{prefix + o.key: ""}, defaults(ingressclass.Class{}), nil)
			closes := strings.HasSuffix(o.key, "list-source-range")
			if len(findings) > 0 != closes || s.closed != "" != closes || s.dropped {
				t.Errorf("%s%s: %v, closed %q, dropped %v", prefix, o.key, findings, s.closed, s.dropped)
			}
		}
	}
}

// Sizes are those of nginx, whose type for them has 63 bits.
func TestSizes(t *testing.T) {
	for value, want := range map[string]int64{
		"0": 0, "8k": 8 << 10, "1M": 1 << 20, "4g": 4 << 30, "3000000000": 3000000000, "4294967296": 1 << 32, "9223372036854775807": 1<<63 - 1,
		"8589934591g": 8589934591 << 30,
		// refused:
		"8589934592g": -1, "9223372036854775808": -1, "-1": -1, "": -1, "k": -1, "1kk": -1, "8b": -1,
	} {
		got, err := parseBytes(value)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("parseBytes(%q) = %d, %v, want %d", value, got, err, want)
		}
	}
}
