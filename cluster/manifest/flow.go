package manifest

import "bytes"

// flow reads the value at the beginning of text and returns what follows it, without
// spaces in between.
func (p *plainReader) flow(text []byte) (rest []byte, ok bool) {
	if len(text) == 0 {
		return nil, false
	}
	switch text[0] {
	case '{', '[':
		if p.depth++; p.depth > plainDepth {
			return nil, false
		}
		if text[0] == '{' {
			rest, ok = p.flowMapping(trimLeft(text[1:]))
		} else {
			rest, ok = p.flowSequence(trimLeft(text[1:]))
		}
		p.depth--
		return trimLeft(rest), ok
	case '"', '\'':
		return p.quoted(text)
	}
	n := 0
	for n < len(text) && (isFlowByte(text[n]) || isJoint(text[n:])) {
		n++
	}
	return trimLeft(text[n:]), n > 0 && p.scalar(text[:n])
}

// isJoint reports whether text begins with what belongs to a scalar because of what
// comes after it: "a b", "a:b".
func isJoint(text []byte) bool {
	return (text[0] == ' ' || text[0] == ':') && len(text) > 1 && isFlowByte(text[1])
}

func (p *plainReader) flowMapping(text []byte) (rest []byte, ok bool) {
	open := len(p.keys)
	p.out = append(p.out, '{')
	more := !bytes.HasPrefix(text, []byte{'}'})
	if !more {
		text = text[1:]
	}
	for more {
		key, value, ok := cutKey(text)
		if !ok || !p.key(key, open) {
			return nil, false
		}
		if text, ok = p.flow(value); !ok {
			return nil, false
		}
		if text, more, ok = cutComma(text, '}'); !ok {
			return nil, false
		}
	}
	p.out = append(p.out, '}')
	p.keys = p.keys[:open]
	return text, true
}

func (p *plainReader) flowSequence(text []byte) (rest []byte, ok bool) {
	p.out = append(p.out, '[')
	more := !bytes.HasPrefix(text, []byte{']'})
	if !more {
		text = text[1:]
	}
	for more {
		if text, ok = p.flow(text); !ok {
			return nil, false
		}
		if text, more, ok = cutComma(text, ']'); !ok {
			return nil, false
		}
		if more {
			p.out = append(p.out, ',')
		}
	}
	p.out = append(p.out, ']')
	return text, true
}

// cutComma takes away what stands after a value: a comma, so that there are more, or end.
func cutComma(text []byte, end byte) (rest []byte, more, ok bool) {
	if len(text) == 0 {
		return nil, false, false
	}
	return trimLeft(text[1:]), text[0] == ',', text[0] == ',' || text[0] == end
}

// quoted reads a string in quotes that has no escapes in it.
func (p *plainReader) quoted(text []byte) (rest []byte, ok bool) {
	body, rest, ok := bytes.Cut(text[1:], text[:1])
	if !ok || bytes.IndexByte(body, '\\') >= 0 || len(rest) > 0 && rest[0] == text[0] {
		return nil, false
	}
	p.text(body)
	return trimLeft(rest), true
}

// scalar writes what stands without quotes: a string, true or false, or a whole number.
func (p *plainReader) scalar(text []byte) bool {
	switch c := text[0]; {
	case isDigit(c) && isNumber(text), string(text) == "true", string(text) == "false":
		p.out = append(p.out, text...)
		return true
	case isDigit(c) && !isNoNumber(text), isWord(text):
		return false
	case isDigit(c), isLetter(c), c == '/', c == '_':
		p.text(text)
		return true
	}
	return false
}

// text writes a string.
func (p *plainReader) text(s []byte) {
	p.out = append(p.out, '"')
	for _, c := range s {
		if c == '"' || c == '\\' {
			p.out = append(p.out, '\\')
		}
		p.out = append(p.out, c)
	}
	p.out = append(p.out, '"')
}

// isNumber reports whether text is a number to everyone: 010 is 8 to YAML.
func isNumber(text []byte) bool {
	for _, c := range text {
		if !isDigit(c) {
			return false
		}
	}
	return len(text) <= 15 && (len(text) == 1 || text[0] != '0')
}

// isNoNumber reports whether text cannot be a number in any of YAML's spellings, such
// as 0x1f, 1_000 and 1e3.
func isNoNumber(text []byte) bool {
	dots := 0
	for _, c := range text {
		if c == '.' {
			dots++
		} else if !isDigit(c) && bytes.IndexByte([]byte("abcdefABCDEFxXoO_+-"), c) < 0 {
			return true
		}
	}
	return dots > 1
}

// isWord reports whether text is one of YAML's words for true, false and null, in any case.
func isWord(text []byte) bool {
	for _, word := range []string{"y", "yes", "true", "on", "n", "no", "false", "off", "null"} {
		if len(text) == len(word) && bytes.EqualFold(text, []byte(word)) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isKeyByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '.' || c == '/' || c == '-'
}

func isFlowByte(c byte) bool {
	return isKeyByte(c) || c == '+' || c == '=' || c == '$' || c == '(' || c == ')' || c == '^' || c == '*'
}
