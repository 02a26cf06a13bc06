// Package tickets is about the keys with which proxies seal TLS session tickets and
// session cookies: what the Secret holds that the controller keeps and all proxies read,
// so that any of them resumes a session that another began.
//
// It is pure. The key of cookies stays, since the sessions of clients last for as long
// as their owners say. Those of tickets are rotated: who rotates is one, the leader; who
// reads are many and may lag by a rotation: a key is handed out before it seals, and
// opens for as long after.
package tickets

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Name is that of the Secret, in the namespace that Quayside is installed in.
const Name = "quayside-session-tickets"

// Period is how long a key seals. Before and after that it only opens, for as long
// each: what is captured can be opened by whoever gets hold of a key within a day.
const Period = 8 * time.Hour

// kept is how many keys there are: one that seals, the next, and the one before.
const kept = 3

// The keys of the Secret's data.
const (
	// keysKey holds a key per line, 32 bytes in base64: the first seals, all open.
	keysKey = "keys"
	// rotatedKey is when they were last rotated (RFC 3339).
	rotatedKey = "rotated"
	// cookiesKey is the key that session cookies are sealed with, in base64. It is made
	// anew where it is missing, which ends all of these sessions.
	cookiesKey = "cookies"
)

// Key is one of them.
type Key = [32]byte

// Parse returns the keys in a Secret's data: the first seals, all open.
func Parse(data map[string][]byte) ([]Key, error) {
	var keys []Key
	for line := range strings.Lines(string(data[keysKey])) {
		k, ok := decode(line)
		if !ok {
			return nil, fmt.Errorf("line %d of %s is not %d bytes in base64", len(keys)+1, keysKey, len(Key{}))
		}
		if keys = append(keys, k); len(keys) > kept {
			return nil, fmt.Errorf("%s has more than %d lines", keysKey, kept)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s is empty", keysKey)
	}
	return keys, nil
}

// CookieKey returns the key of session cookies in a Secret's data.
func CookieKey(data map[string][]byte) (Key, error) {
	k, ok := decode(string(data[cookiesKey]))
	switch {
	case len(data[cookiesKey]) == 0:
		return k, fmt.Errorf("%s is empty", cookiesKey)
	case !ok:
		return k, fmt.Errorf("%s is not %d bytes in base64", cookiesKey, len(Key{}))
	}
	return k, nil
}

func decode(line string) (k Key, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
	if err != nil || len(raw) != len(k) {
		return k, false
	}
	return Key(raw), true
}

func encode(k Key) []byte { return append(base64.StdEncoding.AppendEncode(nil, k[:]), '\n') }

// Rotate returns what a Secret's data should be at a time, nil where it is as it should
// be, and when to ask again. Whatever else is in it stays. What is of no use is made
// anew.
func Rotate(data map[string][]byte, now time.Time, random func() Key) (want map[string][]byte, next time.Time) {
	want, next = rotate(data, now, random)
	if _, err := CookieKey(data); err != nil {
		if want == nil {
			want = maps.Clone(data)
		}
		want[cookiesKey] = encode(random())
	}
	return want, next
}

// rotate does so for the keys of tickets.
func rotate(data map[string][]byte, now time.Time, random func() Key) (want map[string][]byte, next time.Time) {
	keys, err := Parse(data)
	rotated, bad := time.Parse(time.RFC3339, string(bytes.TrimSpace(data[rotatedKey])))
	if err == nil && bad == nil && len(keys) == kept && now.Before(rotated.Add(Period)) && now.Add(Period).After(rotated) {
		return nil, rotated.Add(Period)
	}
	switch {
	case err != nil || len(keys) != kept:
		keys = []Key{random(), random(), random()}
	default: // the next one seals
		keys = []Key{keys[1], random(), keys[0]}
	}
	var text []byte
	for _, k := range keys {
		text = append(text, encode(k)...)
	}
	want = maps.Clone(data)
	if want == nil {
		want = map[string][]byte{}
	}
	want[keysKey], want[rotatedKey] = text, now.UTC().AppendFormat(nil, time.RFC3339)
	return want, now.Add(Period)
}
