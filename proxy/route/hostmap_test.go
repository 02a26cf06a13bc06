package route

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestHostMapAgainstMap keeps old versions beside new ones: no edit may show in
// a map that was taken before.
func TestHostMapAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m hostMap
		twin := map[string]*host{}
		type version struct {
			m    hostMap
			twin map[string]*host
		}
		versions := []version{{m, maps.Clone(twin)}}
		for range rapid.IntRange(1, 20).Draw(t, "edits") {
			n := rapid.IntRange(1, 40).Draw(t, "changes")
			edit := m.edit()
			for range n {
				name := fmt.Sprint("h", rapid.IntRange(0, 199).Draw(t, "host"))
				if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
					edit.unset([]byte(name))
					delete(twin, name)
				} else {
					twin[name] = newHost(name, nil)
					edit.set(twin[name])
				}
			}
			m = edit.hostMap
			versions = append(versions, version{m, maps.Clone(twin)})
		}
		for _, v := range versions {
			n := 0
			for h := range v.m.all() {
				if n++; v.twin[h.name] != h {
					t.Fatalf("%s is in the map, but should not be", h.name)
				}
			}
			if n != len(v.twin) || v.m.n != n {
				t.Fatalf("%d hosts, counted as %d, want %d", n, v.m.n, len(v.twin))
			}
			for i := range 201 {
				name := fmt.Sprint("h", i)
				if got := v.m.get([]byte(name)); got != v.twin[name] {
					t.Fatalf("get(%s) = %v, want %v", name, got, v.twin[name])
				}
			}
		}
	})
}

func TestAppendHost(t *testing.T) {
	long := make([]byte, maxHost+1)
	for i := range long {
		long[i] = 'a'
	}
	for given, want := range map[string]string{
		"":                     "",
		"Example.COM":          "example.com",
		"example.com:8080":     "example.com",
		"example.com.":         "example.com",
		"example.com.:443":     "example.com",
		"[2001:DB8::1]:80":     "2001:db8::1",
		"[::1]":                "::1",
		"[":                    "",
		":80":                  "",
		".":                    "",
		"caf\xc3\xa9.test":     "caf\xc3\xa9.test",
		string(long):           "",
		string(long[:maxHost]): string(long[:maxHost]),
	} {
		var buf [maxHost]byte
		if got := string(appendHost(buf[:0], given)); got != want {
			t.Errorf("appendHost(%q) = %q, want %q", given, got, want)
		}
	}
}

// TestHostMapSpills: names that all fall into one chunk must not make the table
// grow without end. They are found by trial here, as an attacker would.
func TestHostMapSpills(t *testing.T) {
	var names []string
	for i := 0; len(names) < 2*chunkFull; i++ {
		if name := fmt.Sprint("h", i); hashHost([]byte(name))>>7&0x3ff == 5 {
			names = append(names, name)
		}
	}
	edit := hostMap{}.edit()
	for _, name := range names {
		edit.set(newHost(name, nil))
	}
	m := edit.hostMap
	if len(m.chunks) > 64 || len(m.spill) == 0 {
		t.Errorf("%d chunks for %d hosts, %d spilled", len(m.chunks), m.n, len(m.spill))
	}
	n := 0
	for range m.all() {
		n++
	}
	if n != len(names) || m.n != n {
		t.Errorf("%d hosts, counted as %d, want %d", n, m.n, len(names))
	}
	last := names[len(names)-1]
	edit = m.edit()
	edit.unset([]byte(last))
	for _, name := range names {
		if h := m.get([]byte(name)); h == nil || h.name != name {
			t.Errorf("%s is lost", name)
		}
		if h := edit.get([]byte(name)); (h == nil) != (name == last) {
			t.Errorf("after %s was removed, %s is %v", last, name, h)
		}
	}
}

// TestCanonicalHosts compares appendHost with package strings.
func TestCanonicalHosts(t *testing.T) {
	twin := func(host string) string {
		if address, ok := strings.CutPrefix(host, "["); ok {
			host, _, _ = strings.Cut(address, "]")
		} else if i := strings.IndexAny(host, ":]"); i >= 0 {
			host = host[:i]
		}
		if len(host) > maxHost {
			return ""
		}
		return strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}, strings.TrimSuffix(host, "."))
	}
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "Z", "[", "]", ":", ".", ":80", "@", "`", "{", "\u00c9", strings.Repeat("x", 250)})
		host := strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "host"), "")
		var buf [maxHost]byte
		if got, want := string(appendHost(buf[:0], host)), twin(host); got != want {
			t.Fatalf("%q is %q, want %q", host, got, want)
		}
	})
}
