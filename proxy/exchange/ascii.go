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

// IsToken reports whether every byte of b may stand in a token, such as the
// name of a field (RFC 9110 section 5.6.2). An empty b has no other byte.
func IsToken(b []byte) bool {
	for _, c := range b {
		if !isTokenByte(c) {
			return false
		}
	}
	return true
}

// isTokenByte is RFC 9110's tchar, as two bitmaps.
func isTokenByte(c byte) bool {
	const low = 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.' | (1<<10-1)<<'0'
	const high = (1<<26-1)<<('A'-64) | (1<<26-1)<<('a'-64) | 1<<('^'-64) | 1<<('_'-64) | 1<<('`'-64) | 1<<('|'-64) | 1<<('~'-64)
	return (uint64(low)>>c|uint64(high)>>(c-64))&1 != 0 // a shift by 64 or more leaves nothing
}
