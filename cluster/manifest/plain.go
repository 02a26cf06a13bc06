package manifest

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plainJSON turns a document of plain YAML into JSON, and tells apiVersion and kind
// on the way. It takes a tenth of the time of the YAML library, which builds the
// document as a tree, then as maps, then as text.
//
// Plain is what people and tools write of manifests: mappings and lists by
// indentation, or in braces and brackets on one line, of ASCII scalars on one line.
// Of everything else, of what YAML gives two meanings and of all that is wrong
// it says no more than that it is not sure (ok is false): then the
// library reads the document, and its words are what the user sees. So this may
// refuse whatever it likes, but what it accepts must mean the same to both;
// FuzzPlain holds it to that.
func plainJSON(text []byte) (data []byte, head metav1.TypeMeta, ok bool) {
	p := plainReader{rest: text, out: make([]byte, 0, len(text)+len(text)/4)}
	if !p.next() || p.indent != 0 || !p.mapping() || p.indent >= 0 {
		return nil, head, false
	}
	return p.out, p.head, true
}

// The limits of a document that is still plain.
const (
	plainDepth = 50  // mappings and lists within each other
	plainKeys  = 100 // of mappings that are open at once
	plainKey   = 320 // bytes: prefix, slash and name of an annotation
)

// plainReader reads a document line by line. Its methods report whether all is plain.
type plainReader struct {
	rest   []byte // the lines below this one
	line   []byte // without the spaces around it; a list's item may have been cut off
	indent int    // of line, -1 at the end
	out    []byte
	keys   [][]byte // of the mappings that are open
	depth  int
	head   metav1.TypeMeta
}

// next goes to the next line that is neither empty nor a comment.
func (p *plainReader) next() bool {
	for len(p.rest) > 0 {
		var line []byte
		line, p.rest, _ = bytes.Cut(p.rest, []byte{'\n'})
		for _, c := range line {
			if c < ' ' || c > '~' {
				return false
			}
		}
		line = bytes.TrimRight(line, " ")
		p.line = trimLeft(line)
		if p.indent = len(line) - len(p.line); len(p.line) > 0 && p.line[0] != '#' {
			return true
		}
	}
	p.line, p.indent = nil, -1
	return true
}

// mapping reads the mapping that begins at this line.
func (p *plainReader) mapping() bool {
	indent, open := p.indent, len(p.keys)
	if p.depth++; p.depth > plainDepth {
		return false
	}
	p.out = append(p.out, '{')
	for p.indent == indent {
		key, value, ok := cutKey(p.line)
		if !ok || !p.key(key, open) {
			return false
		}
		if p.depth == 1 {
			p.identify(key, value)
		}
		if !p.value(value, indent) {
			return false
		}
	}
	p.out = append(p.out, '}')
	p.keys = p.keys[:open]
	p.depth--
	return p.indent < indent // else a scalar goes on here, or nobody knows what
}

// identify notes what kind of object this is.
func (p *plainReader) identify(key, value []byte) {
	switch string(key) {
	case "apiVersion":
		p.head.APIVersion = string(value)
	case "kind":
		p.head.Kind = string(value)
	}
}

// value reads what a key at indent stands for: the rest of its line or, where that
// is empty, the lines below.
func (p *plainReader) value(text []byte, indent int) bool {
	if len(text) > 0 {
		return p.inline(text) && p.next()
	}
	if !p.next() {
		return false
	}
	switch {
	case p.indent >= indent && isItem(p.line):
		return p.sequence()
	case p.indent > indent:
		return p.mapping()
	}
	return false // null
}

// sequence reads the list that begins at this line.
func (p *plainReader) sequence() bool {
	indent := p.indent
	if p.depth++; p.depth > plainDepth {
		return false
	}
	p.out = append(p.out, '[')
	for first := true; p.indent == indent && isItem(p.line); first = false {
		if !first {
			p.out = append(p.out, ',')
		}
		item := trimLeft(p.line[1:])
		if _, _, ok := cutKey(item); ok {
			p.indent += len(p.line) - len(item)
			p.line = item
			ok = p.mapping()
			if !ok {
				return false
			}
		} else if !p.inline(item) || !p.next() {
			return false
		}
	}
	p.out = append(p.out, ']')
	p.depth--
	return p.indent <= indent
}

// isItem reports whether a line begins an item of a list that has something in it.
func isItem(line []byte) bool { return len(line) > 2 && line[0] == '-' && line[1] == ' ' }

// inline reads a value that stands on one line.
func (p *plainReader) inline(text []byte) bool {
	switch text[0] {
	case '{', '[', '"', '\'':
		rest, ok := p.flow(text)
		return ok && len(rest) == 0
	}
	if text[len(text)-1] == ':' || bytes.Contains(text, []byte(": ")) || bytes.Contains(text, []byte(" #")) {
		return false // a mapping in a line, a comment
	}
	return p.scalar(text)
}

// cutKey cuts a line at its key.
func cutKey(line []byte) (key, value []byte, ok bool) {
	n := 0
	for n < len(line) && isKeyByte(line[n]) {
		n++
	}
	if n == 0 || n > plainKey || n == len(line) || line[n] != ':' || !isLetter(line[0]) {
		return nil, nil, false
	}
	key, value = line[:n], line[n+1:]
	return key, trimLeft(value), len(value) == 0 || value[0] == ' '
}

// key writes a key of the mapping whose keys begin at open.
func (p *plainReader) key(key []byte, open int) bool {
	if isWord(key) || len(p.keys) == plainKeys {
		return false
	}
	for _, k := range p.keys[open:] {
		if bytes.Equal(k, key) {
			return false // twice
		}
	}
	if len(p.keys) > open {
		p.out = append(p.out, ',')
	}
	p.keys = append(p.keys, key)
	p.out = append(append(append(p.out, '"'), key...), '"', ':')
	// Its bytes are kept as they are written, and the library puts them in order.
	return string(key) != "fieldsV1"
}

func trimLeft(text []byte) []byte { return bytes.TrimLeft(text, " ") }
