package manifest

import (
	"bytes"
)

type part struct {
	line int // of its first line, from 1
	text []byte
}

// split cuts a file at its document markers and remembers where each part
// begins. (The usual readers forget.)
func split(data []byte) []part {
	var parts []part
	begin, first, line := 0, 1, 1
	cut := func(end int) {
		if !isEmpty(data[begin:end]) {
			parts = append(parts, part{first, data[begin:end]})
		}
	}
	for at := 0; at < len(data); line++ {
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if isMarker(data[at:end]) {
			cut(at)
			begin, first = end, line+1
		}
		at = end
	}
	cut(len(data))
	return parts
}

// isEmpty reports whether a text is only blank lines and comments. Such parts
// are not counted as documents, or the licence on top of a file would be one.
func isEmpty(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// isMarker reports whether a line is "---", alone or with a comment.
func isMarker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok {
		return false
	}
	text := bytes.TrimSpace(rest)
	return len(text) == 0 || text[0] == '#' && (rest[0] == ' ' || rest[0] == '\t')
}
