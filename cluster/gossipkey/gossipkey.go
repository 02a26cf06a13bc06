// Package gossipkey is about the file of gossip keys that all speakers share: which keys
// it holds, and a word for each by which a speaker says that it has it.
//
// It is pure. The controller rotates the file and asks who has which key; speakers
// read it.
package gossipkey

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	// minSecret is how long a line of the file must be, in bytes.
	minSecret = 16
	keyLen    = 32 // AES-256
	salt      = "quayside.io/members"
	info      = "gossip v1"
	printInfo = "fingerprint v1"
	// printLen is short: it tells a few keys from each other, and a secret that somebody
	// made up himself apart from as few others as possible.
	printLen = 4
)

// Secrets are the lines of a file that hold something.
func Secrets(file []byte) (lines [][]byte) {
	for line := range bytes.Lines(file) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// Derive makes a key of a line.
func Derive(secret []byte) ([]byte, error) {
	if len(secret) < minSecret {
		return nil, fmt.Errorf("%d bytes; a secret needs at least %d", len(secret), minSecret)
	}
	return hkdf.Key(sha256.New, secret, []byte(salt), info, keyLen)
}

// Parse returns the keys of a file: the first encrypts, all decrypt.
func Parse(file []byte) ([][]byte, error) {
	var keys [][]byte
	for i, line := range bytes.Split(file, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		key, err := Derive(line)
		if err != nil {
			return nil, fmt.Errorf("line %d has %w", i+1, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("it holds no secret")
	}
	return keys, nil
}

// Print is the word for a key: eight hexadecimal digits, from which nobody learns it.
func Print(key []byte) string {
	sum, err := hkdf.Key(sha256.New, key, []byte(salt), printInfo, printLen)
	if err != nil {
		return "" // of lengths that SHA-256 cannot make, and this one it can
	}
	return hex.EncodeToString(sum)
}
