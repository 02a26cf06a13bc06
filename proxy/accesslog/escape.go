package accesslog

import "unicode/utf8"

const hexadecimal = "0123456789ABCDEF"

// bytes appends b escaped. Nil is no value.
func (r *Record) bytes(b []byte) {
	r.blank = b != nil
	if r.json {
		r.line = appendJSON(r.line, b)
	} else {
		r.line = appendEscaped(r.line, b)
	}
}

// text appends what is our own, and needs no escaping save in names of objects.
func (r *Record) text(s string) { r.line = append(r.line, s...) }

// appendEscaped appends b as nginx does: what could end a field or a line as \xHH.
func appendEscaped(dst, b []byte) []byte {
	for len(b) > 0 {
		n := harmless(b)
		dst = append(dst, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			break
		}
		c := b[0]
		dst = append(dst, '\\', 'x', hexadecimal[c>>4], hexadecimal[c&15])
		b = b[1:]
	}
	return dst
}

// harmless returns how many bytes at the start of b stand for themselves in every
// format.
func harmless(b []byte) int {
	for i, c := range b {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return i
		}
	}
	return len(b)
}

// appendJSON appends b as the inside of a string of JSON (RFC 8259 section 7). What is
// no UTF-8 becomes U+FFFD.
func appendJSON(dst, b []byte) []byte {
	for {
		n := harmless(b)
		dst = append(dst, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return dst
		}
		c, size := rune(b[0]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(b)
		}
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ' || 0x7f <= c && c < 0xa0:
			dst = append(dst, '\\', 'u', '0', '0', hexadecimal[c>>4], hexadecimal[c&15])
		case c == '\u2028' || c == '\u2029': // ends of lines to some readers
			dst = append(dst, `\u202`...)
			dst = append(dst, hexadecimal[c&15])
		case c == utf8.RuneError && size == 1:
			dst = append(dst, `\uFFFD`...)
		default:
			dst = append(dst, b[:size]...)
		}
		b = b[size:]
	}
}
