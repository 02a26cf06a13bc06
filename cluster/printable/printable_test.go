package printable

import (
	"maps"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

// What is meant for people passes as it is; what drives their tools is shown.
func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"10.0.0.1 is Zürich’s, 100 €": "10.0.0.1 is Zürich’s, 100 €",
		"a \\x1b that is spelled":     `a \x1b that is spelled`,
		"two\nlines\r\tone":           `two\nlines\r\tone`,
		"\x1b[2J\x1b]0;title\a":       `\x1b[2J\x1b]0;title\a`,
		"\u009b2J\x7f":                `\u009b2J\x7f`,
		"a\u0085b\u2028c\u2029d":      `a\u0085b\u2028c\u2029d`,
		"\u202egnp.exe\u2066\u200f":   `\u202egnp.exe\u2066\u200f`,
		"\ufeffa\u200bb\U000e0041":    `\ufeffa\u200bb\U000e0041`,
		"not \x9b UTF-8":              "not \ufffd UTF-8",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got, want := Lines("one\n\x1btwo\n"), "one\n\\x1btwo\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	const room = 8
	for in, want := range map[string]string{
		"":          "",
		"12345678":  "12345678",
		"123456789": "12345…",
		"éééé":      "éééé",
		"ééééé":     "éé…",
		"1ééééé":    "1éé…",
	} {
		if got := Cut(in, room); got != want || len(got) > room {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestWhatCannotBeEncodedIsAnError(t *testing.T) {
	for _, encode := range []func(any) ([]byte, error){JSON, YAML} {
		if out, err := encode(func() {}); err == nil {
			t.Errorf("a function is written as %s", out)
		}
	}
}

// FuzzPrintable writes anything: no character is unseen, and a reader of the
// document has the value that was written.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"plain", "two\nlines\n", "x\u0085--- y", "/x\u2028---\u2028kind: Secret", "\u202e\x7f\u009b\ufeff\ufffe", "\U000e0041\U0001f600", "\x9b", "<<", "- a\n\u2029: b #"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if line := Line(s); strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%q became %q", s, line)
		}
		valid := strings.ToValidUTF8(s, "\ufffd") // as JSON has it
		written := map[string]string{"a": valid}
		if len(valid) < 100 { // YAML bounds the length of a key
			written[valid] = "b"
		}
		for name, encode := range map[string]func(any) ([]byte, error){"JSON": JSON, "YAML": YAML} {
			out, err := encode(written)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if strings.ContainsFunc(string(out), func(r rune) bool { return r != '\n' && r <= 0xffff && !unicode.IsGraphic(r) }) {
				t.Errorf("%s: %q became %q", name, s, out)
			}
			var read map[string]string
			if err := yaml.Unmarshal(out, &read); err != nil {
				t.Errorf("%s: %v in\n%.1000s", name, err, out)
			}
			if !maps.Equal(written, read) {
				t.Errorf("%s: wrote %.1000q and read %.1000q", name, written, read)
			}
		}
	})
}
