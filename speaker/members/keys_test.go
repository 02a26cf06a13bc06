package members

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"

	"quayside.io/cluster/gossipkey"
)

// The vector was computed with another program (Python's hmac, by the letter
// of RFC 5869), so that a change of derivation cannot go unnoticed: it would
// split every running cluster.
func TestKeysAreDerivedAsEver(t *testing.T) {
	keys, err := gossipkey.Parse([]byte("correct horse battery staple\n\n  0123456789abcdef  \n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1589ed867408b794d185f05936a428b608170c23143c353bc2c712cd41bb3791", "32c4e7235c9b8934cb8523b19778cf8b90c5b285fed18051e710440b742f3c23"}
	for i, k := range keys {
		if hex.EncodeToString(k) != want[i] {
			t.Errorf("key %d is %x, want %s", i, k, want[i])
		}
	}
}

func TestBadKeyFilesAreRefused(t *testing.T) {
	for file, why := range map[string]string{"": "no secret", "\n \n": "no secret", "long enough for a key\nshort\n": "line 2 has 5 bytes"} {
		if _, err := gossipkey.Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", file, err, why)
		}
	}
}

// A key that was taken out of the file opens nothing any more, however many go
// at once.
func TestRotationLeavesNoOldKey(t *testing.T) {
	secrets := "the first secret of all\nthe second secret is better\nthe third secret of them\nthe fourth secret of them\n"
	keys, err := gossipkey.Parse([]byte(secrets))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	next, err := gossipkey.Parse([]byte("the secret after all of them\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := rotate(ring, next); err != nil {
		t.Fatal(err)
	}
	if have := ring.GetKeys(); len(have) != 1 || !bytes.Equal(have[0], next[0]) {
		t.Errorf("%d keys open packets, want the one of the file", len(have))
	}
}
