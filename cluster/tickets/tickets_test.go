package tickets

import (
	"encoding/binary"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// counting returns keys that differ.
func counting() func() Key {
	n := uint64(0)
	return func() (k Key) {
		n++
		binary.BigEndian.PutUint64(k[:], n)
		return k
	}
}

func TestRotate(t *testing.T) {
	random, now := counting(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data, next := Rotate(map[string][]byte{"else": []byte("x")}, now, random)
	keys, err := Parse(data)
	if err != nil || len(keys) != 3 || !next.Equal(now.Add(Period)) || string(data["else"]) != "x" {
		t.Fatalf("%v %v %v", data, next, err)
	}
	if same, at := Rotate(data, now.Add(Period-time.Second), random); same != nil || !at.Equal(next) {
		t.Errorf("rotated too early, next %v", at)
	}
	then, _ := Rotate(data, now.Add(Period), random)
	later, err := Parse(then)
	if err != nil || later[0] != keys[1] || later[2] != keys[0] || later[1] == keys[2] {
		t.Errorf("from %x to %x, %v", keys, later, err)
	}
	for name, bad := range map[string]map[string][]byte{
		"nothing":    nil,
		"no base64":  {"keys": []byte("x\n"), "rotated": data["rotated"]},
		"too short":  {"keys": []byte("eHh4\n"), "rotated": data["rotated"]},
		"too many":   {"keys": append(append([]byte{}, data["keys"]...), data["keys"]...), "rotated": data["rotated"]},
		"no time":    {"keys": data["keys"]},
		"far future": {"keys": data["keys"], "rotated": []byte("2099-01-01T00:00:00Z")},
	} {
		if want, _ := Rotate(bad, now, random); want == nil {
			t.Errorf("%s stays", name)
		} else if _, err := Parse(want); err != nil {
			t.Errorf("%s becomes %q: %v", name, want, err)
		}
	}
}

// The key of cookies is made once and stays, whatever becomes of those of tickets.
func TestRotateKeepsTheKeyOfCookies(t *testing.T) {
	random, now := counting(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data, next := Rotate(nil, now, random)
	key, err := CookieKey(data)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		data, next = Rotate(data, next, random)
		if after, err := CookieKey(data); err != nil || after != key {
			t.Fatalf("%x became %x, %v", key, after, err)
		}
	}
	// One that is missing, as in a Secret of an older controller, comes at once and alone.
	for _, bad := range []string{"", "x", "eHh4"} {
		old := maps.Clone(data)
		old[cookiesKey] = []byte(bad)
		want, at := Rotate(old, next.Add(-time.Second), random)
		if made, err := CookieKey(want); err != nil || made == key || !at.Equal(next) || string(want[keysKey]) != string(data[keysKey]) {
			t.Errorf("%q becomes %q, next at %v: %v", bad, want, at, err)
		}
	}
}

// Proxies that lag by up to a period and those that do not open each other's tickets.
func TestWhoLagsByAPeriodOpensAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random, now := counting(), time.Unix(1e9, 0)
		data, _ := Rotate(nil, now, random)
		for range rapid.IntRange(1, 6).Draw(t, "rotations") {
			old, _ := Parse(data)
			now = now.Add(Period + time.Duration(rapid.IntRange(0, 1000).Draw(t, "late"))*time.Second)
			data, _ = Rotate(data, now, random)
			young, _ := Parse(data)
			for _, pair := range [][2][]Key{{old, young}, {young, old}} {
				opens := false
				for _, k := range pair[1] {
					opens = opens || k == pair[0][0]
				}
				if !opens {
					t.Fatalf("what is sealed by %x is not opened by %x", pair[0][0], pair[1])
				}
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	data, _ := Rotate(nil, time.Unix(1e9, 0), counting())
	f.Add(data["keys"])
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := Parse(map[string][]byte{"keys": text})
		if err == nil && (len(keys) == 0 || len(keys) > 3) {
			t.Errorf("%d keys", len(keys))
		}
	})
}
