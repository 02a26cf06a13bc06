package exchange

import (
	"strings"
	"testing"
)

func TestTokenBytes(t *testing.T) {
	for c := range 256 {
		want := strings.ContainsRune("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", rune(c)) && c < 128
		if got := IsToken([]byte{byte(c)}); got != want {
			t.Errorf("IsToken(%q) = %v", rune(c), got)
		}
		plain := want && (c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z')
		if got := SpellingOf([]byte{'a', byte(c)}); (got == 0) != plain || (got == Underscored) != (c == '_') || (got == NoToken) == want {
			t.Errorf("the spelling of %q is %d", rune(c), got)
		}
	}
}

// Unicode folds more letters than HTTP does: to bytes.EqualFold the second of
// these is chunked, and to the next reader of the message it is not.
func TestEqualFoldIsASCII(t *testing.T) {
	for value, want := range map[string]bool{"CHUNKED": true, "chun\u212aed": false, "chunke": false} {
		if got := EqualFold([]byte(value), "chunked"); got != want {
			t.Errorf("EqualFold(%q, \"chunked\") = %v", value, got)
		}
	}
}
