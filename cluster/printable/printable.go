// Package printable makes what others wrote harmless to show. A tenant's text
// may hold escapes that drive a terminal, marks that turn the direction of what
// is read, and line breaks where nobody looks for them: YAML ends a line, and so
// a comment, at U+0085, U+2028 and U+2029, too.
//
// It is pure, and any package that prints for people may import it. It keeps one
// promise: what comes out holds only graphic characters, and breaks a line only where the caller
// does; the rest stands escaped, so that nothing is lost and all of it is seen.
package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Line returns s as part of one line: of a screen, or of a comment.
func Line(s string) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	if !strings.ContainsFunc(s, isUnseen) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !isUnseen(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Lines is Line for a text that has lines of its own, as joined errors have.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Line(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Cut returns s if it has room in so many bytes, and else as much of it as has,
// cut between two characters, with a mark that there was more.
func Cut(s string, room int) string {
	const more = "…"
	if len(s) <= room {
		return s
	}
	return strings.ToValidUTF8(s[:room-len(more)], "") + more
}

// JSON returns v as indented JSON that ends its last line.
func JSON(v any) ([]byte, error) {
	text, err := escaped(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// YAML returns v as one document. The encoder writes some line breaks and every
// change of direction as they are, and a few words so that they mean something
// else: a value with one of those is returned as JSON, which is YAML as well.
func YAML(v any) ([]byte, error) {
	text, err := escaped(v)
	if err != nil {
		return nil, err
	}
	if out, err := yaml.JSONToYAML(text); err == nil && Lines(string(out)) == string(out) && mean(out, text) {
		return out, nil
	}
	return JSON(v)
}

// mean reports whether a reader of two documents has the same value.
func mean(a, b []byte) bool {
	var one, other any
	return yaml.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// escaped is v as JSON in which only graphic characters stand for themselves.
// Those beyond the basic plane stay: a pair of escapes is no YAML, and no
// character there breaks a line or turns one.
func escaped(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if isUnseen(r) && r <= 0xffff {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes(), nil
}

// isUnseen reports whether r has no shape of its own: control characters,
// separators of lines, marks of direction, and what Unicode does not know.
func isUnseen(r rune) bool { return !unicode.IsGraphic(r) }
