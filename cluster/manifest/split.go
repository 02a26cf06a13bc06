package manifest

import (
	"bytes"
)

// Document is one document of a file.
type Document struct {
	Index int // from 1
	Line  int // of its first line in the file, from 1
	Text  []byte
}

// Split cuts a file at its document markers and remembers where each document
// begins. (The usual readers forget.)
func Split(data []byte) []Document {
	if text := bytes.TrimSpace(data); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		// JSON is YAML but for tabs, which JSON allows between tokens only.
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	var documents []Document
	begin, first, line := 0, 1, 1
	cut := func(end int) {
		if !isEmpty(data[begin:end]) {
			documents = append(documents, Document{len(documents) + 1, first, data[begin:end]})
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
	return documents
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
