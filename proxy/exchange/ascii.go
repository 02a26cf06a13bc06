package exchange

// HTTP compares names in ASCII. The functions of package bytes fold Unicode, in
// which other bytes than "k" and "s" are those letters too.

// EqualFold reports whether a and b are equal in ASCII, without regard to case.
func EqualFold(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// AppendLower appends name in lower case.
func AppendLower(dst, name []byte) []byte {
	for _, c := range name {
		dst = append(dst, lower(c))
	}
	return dst
}

// TrimSpace returns a field value without the spaces and tabs around it, which
// do not belong to it (RFC 9110 section 5.6.3).
func TrimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// IsFieldValue reports whether s holds no control character but the tab.
func IsFieldValue[S string | []byte](s S) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// Spelling is what stands in a token, such as the name of a field (RFC 9110 section 5.6.2). Zero
// is one of letters, digits and dashes alone, or an empty one.
type Spelling uint8

// What a token may have besides.
const (
	Underscored Spelling = 1 << iota
	Odd                  // another of RFC 9110's tchar
	NoToken              // a byte that may not stand in a token
)

// SpellingOf returns what stands in b.
func SpellingOf(b []byte) (s Spelling) {
	for _, c := range b {
		if !isPlain(c) {
			s |= oddity(c)
		}
	}
	return s
}

// IsToken reports whether every byte of b may stand in a token. An empty b has no other byte.
func IsToken(b []byte) bool { return SpellingOf(b)&NoToken == 0 }

// isPlain is for letters, digits and the dash, as two bitmaps.
func isPlain(c byte) bool {
	const low = 1<<'-' | (1<<10-1)<<'0'
	const high = (1<<26-1)<<('A'-64) | (1<<26-1)<<('a'-64)
	return (uint64(low)>>c|uint64(high)>>(c-64))&1 != 0 // a shift by 64 or more leaves nothing
}

// oddity is what any other byte is.
func oddity(c byte) Spelling {
	switch c {
	case '_':
		return Underscored
	case '!', '#', '$', '%', '&', '\'', '*', '+', '.', '^', '`', '|', '~':
		return Odd
	}
	return NoToken
}
