package gossipkey

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// The controller and the speakers speak of the same keys in the same words, and no
// word is of another key.
func TestEveryKeyHasItsWord(t *testing.T) {
	file := []byte("\n  first secret of them \nanother secret of them\r\n\n")
	keys, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	secrets := Secrets(file)
	if len(keys) != 2 || len(secrets) != 2 {
		t.Fatalf("%d keys of %d secrets", len(keys), len(secrets))
	}
	words := map[string]bool{}
	for i, secret := range secrets {
		key, err := Derive(secret)
		if err != nil || !bytes.Equal(key, keys[i]) || len(key) != 32 {
			t.Errorf("%q: %x, %v", secret, key, err)
		}
		word := Print(key)
		if words[word] || word != Print(keys[i]) || !regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString(word) {
			t.Errorf("%q: %q", secret, word)
		}
		words[word] = true
	}
	if _, err := Derive([]byte("short")); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("%v", err)
	}
}
