package filter

import "strings"

// appendEscaped appends part of a normalised path, or of a template, as it goes over
// the wire. Both are unescaped save where the bare character would mean something
// else, so percent signs stay.
func appendEscaped(dst, b []byte) []byte {
	return escape(dst, b, func(c byte) bool { return isGraphic(c) && strings.IndexByte("\"<>\\^`{|}", c) < 0 })
}

// appendQuery appends b as part of a query: what would mean something there is escaped.
func appendQuery(dst, b []byte) []byte {
	return escape(dst, b, func(c byte) bool { return isGraphic(c) && strings.IndexByte("#%&+;?\"<>\\^`{|}", c) < 0 })
}

// appendComponent appends b as one component of a URL: all but the unreserved
// characters of RFC 3986 section 2.3 escaped.
func appendComponent(dst, b []byte) []byte {
	return escape(dst, b, func(byte) bool { return false })
}

// escape appends b, and what is neither unreserved nor kept as its hexadecimal digits.
func escape(dst, b []byte, kept func(c byte) bool) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range b {
		if isUnreserved(c) || kept(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// isUnreserved reports whether c means nothing but itself anywhere in a URL (RFC 3986 section 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// isGraphic reports whether c is a character of ASCII that is seen.
func isGraphic(c byte) bool { return ' ' < c && c < 0x7f }
